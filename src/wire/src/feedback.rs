//! Feedback of visitors, as the workflow's owner reads it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::FeedbackKind;

/// One visitor's feedback on an item. What the turn read and wrote was copied when the feedback was given.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackRecord {
    /// UUIDv7.
    pub id: String,
    /// When it was given.
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
    /// The version that ran; null for a draft, or without a copy.
    pub version: Option<i32>,
    /// Who gave it.
    pub author: FeedbackAuthor,
    /// The run's inputs; null without a copy.
    pub inputs: Option<Value>,
    /// The messages that the turn read: at most the newest 200, and 256 KiB; at least the newest one.
    pub messages: Option<Vec<Value>>,
    /// The run's output; null if it had none yet, or failed.
    pub output: Option<Value>,
    /// All text of the turn.
    pub output_text: Option<String>,
}

/// The author of a feedback.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackAuthor {
    /// `visitor`, `session`, `user` or `anyone`.
    pub kind: String,
    /// Their id; null for `anyone`.
    pub id: Option<String>,
}

/// A feedback as a case of a dataset: a line of `?format=jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FeedbackCase {
    /// The feedback's id.
    pub id: String,
    /// The run's inputs.
    pub inputs: Value,
    /// The turn's text if the feedback is positive.
    pub expected_output: Option<String>,
    /// What else is known.
    pub metadata: FeedbackMetadata,
}

/// What a case that was a feedback carries besides inputs and output.
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
    /// The version that ran.
    pub version: Option<i32>,
    /// The messages that the turn read.
    pub messages: Vec<Value>,
    /// The run's output.
    pub output: Option<Value>,
    /// What a person decided.
    pub human: HumanVerdict,
}

/// The verdict of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HumanVerdict {
    /// Whether the output is good.
    pub passed: bool,
}
