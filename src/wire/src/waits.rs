//! What a run waits for.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;
use crate::chat::ItemBody;

/// What asks for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum WaitKind {
    /// The node `wait_for_input`, or a step whose outcome is unknown.
    #[default]
    Input,
    /// The node `ask`.
    Ask,
    /// The node `client_tool`, or a client tool of an agent.
    ClientTool,
}

impl WaitKind {
    /// Of the item that asks in a chat, if there is one.
    #[must_use]
    pub fn of(item: Option<&ItemBody>) -> Self {
        match item {
            Some(ItemBody::StructuredInput { .. }) => Self::Ask,
            Some(ItemBody::ClientToolCall { .. }) => Self::ClientTool,
            _ => Self::Input,
        }
    }
}

/// The answer that a run waits for; `POST /api/runs/{id}/inputs/{key}` gives it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WaitsFor {
    /// By which an answer names it.
    pub key: String,
    /// What asks.
    #[serde(default)]
    pub kind: WaitKind,
    /// The pending item of the chat, once the turn has ended with it.
    #[serde(default)]
    pub item_id: Option<String>,
    /// What is asked, for people.
    pub message: Option<String>,
    /// JSON Schema that an answer has to fit.
    pub schema: Option<Value>,
    /// Who may answer: `role:<role>` or mail addresses; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// When it is too late.
    pub expires_at: Option<Timestamp>,
}
