//! Answers that a run waits for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::ItemBody;

/// The node kind that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// The node `wait_for_input`, or a step with an unknown outcome.
    #[default]
    Input,
    /// The node `ask`.
    Ask,
    /// The node `client_tool`, or a client tool of an agent.
    ClientTool,
}

impl WaitKind {
    /// The kind for a chat's pending item, if there is one.
    #[must_use]
    pub fn from_item(item: Option<&ItemBody>) -> Self {
        match item {
            Some(ItemBody::StructuredInput { .. }) => Self::Ask,
            Some(ItemBody::ClientToolCall { .. }) => Self::ClientTool,
            _ => Self::Input,
        }
    }
}

/// An answer that a run waits for; send it with `POST /api/runs/{id}/inputs/{key}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitsFor {
    /// The key under which the answer is sent.
    pub key: String,
    /// The waiting node's kind.
    #[serde(default)]
    pub kind: WaitKind,
    /// The chat's pending item, after the turn has ended with it.
    #[serde(default)]
    pub item_id: Option<String>,
    /// The question, for people.
    pub message: Option<String>,
    /// JSON Schema for the answer.
    pub schema: Option<Value>,
    /// Callers who may answer: `role:<role>` or mail addresses; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// Expiry.
    pub expires_at: Option<Timestamp>,
}
