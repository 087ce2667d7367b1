//! Visitors' feedback, as the workflow's owner reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::FeedbackKind;

/// One visitor's feedback on an item. It contains a copy of the turn's input and output, taken when the feedback was
/// given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackRecord {
    /// UUIDv7.
    pub id: String,
    /// Feedback time.
    pub at: Timestamp,
    /// The rating.
    pub kind: FeedbackKind,
    /// The visitor's words.
    pub comment: Option<String>,
    /// The thread; null for callers who may not read threads.
    pub thread_id: Option<String>,
    /// The item.
    pub item_id: String,
    /// The run that created the item; null for a visitor's message.
    pub run_id: Option<String>,
    /// The executed version; null for a draft, or without a copy.
    pub version: Option<i32>,
    /// The author.
    pub author: FeedbackAuthor,
    /// The run's inputs; null without a copy.
    pub inputs: Option<Value>,
    /// The messages that the turn read: at most the newest 200 and 256 KiB, but at least the newest one.
    pub messages: Option<Vec<Value>>,
    /// The run's output; null if the run had none yet, or failed.
    pub output: Option<Value>,
    /// The turn's whole text.
    pub output_text: Option<String>,
}

/// A feedback author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackAuthor {
    /// `visitor`, `session`, `user` or `anyone`.
    pub kind: String,
    /// Their id; null for `anyone`.
    pub id: Option<String>,
}

/// A feedback as a dataset case: a line of `?format=jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackCase {
    /// The feedback's id.
    pub id: String,
    /// The run's inputs.
    pub inputs: Value,
    /// The turn's text if the feedback is positive.
    pub expected_output: Option<String>,
    /// Other data.
    pub metadata: FeedbackMetadata,
}

/// A feedback case's data besides inputs and output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackMetadata {
    /// The rating.
    pub feedback: FeedbackKind,
    /// The visitor's words.
    pub comment: Option<String>,
    /// The run.
    pub run_id: Option<String>,
    /// The thread: the case is emptied with it. Null for callers who may not read threads.
    pub thread_id: Option<String>,
    /// The executed version.
    pub version: Option<i32>,
    /// The messages that the turn read.
    pub messages: Vec<Value>,
    /// The run's output.
    pub output: Option<Value>,
    /// The person's verdict.
    pub human: HumanVerdict,
}

/// A person's verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HumanVerdict {
    /// Whether the output is good.
    pub passed: bool,
}
