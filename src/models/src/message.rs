//! Model requests, answers and messages.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileRef, Part};

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// A conversation message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The text.
    pub content: String,
    /// Files that the message refers to, as in a graph's `messages`. Providers ignore them and send `parts`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// Texts and images sent after `content`. Providers send them for user messages only. Not in the journal.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// Tool calls that the model requests; in assistant messages only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// The id of the answered call; in tool messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// As in [`ModelAnswer::carry`]; in assistant messages only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Value>,
}

impl Message {
    /// Creates a text-only message.
    #[must_use]
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            files: Vec::new(),
            parts: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: None,
            carry: None,
        }
    }

    /// The parts that a provider sends: only for a user message, and without blank texts, which endpoints refuse.
    pub(super) fn sent_parts(&self) -> impl Iterator<Item = &Part> {
        let of_user = self.role == Role::User;
        self.parts.iter().filter(move |part| match part {
            Part::Text(text) => of_user && !text.trim().is_empty(),
            Part::Image(_) => of_user,
        })
    }
}

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Tool {
    /// The tool's name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// JSON Schema for the arguments.
    pub parameters: Value,
}

/// A tool call that a model requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id for the call.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments.
    pub arguments: Value,
}

/// A model call.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelRequest {
    /// The model's name without the provider prefix.
    pub model: String,
    /// The conversation, latest message last.
    pub messages: Vec<Message>,
    /// Sampling temperature, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Maximum answer tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// A repeated seed requests the same answer, if the endpoint supports seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// JSON Schema for the answer, which is then JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Tools that the model may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Sent as `Idempotency-Key`.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Token counts of a call, as reported by the endpoint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens that the endpoint had cached and charges less for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached_tokens: u64,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A model's answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelAnswer {
    /// The text.
    pub text: String,
    /// Requested tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// Token counts; `None` if the endpoint does not report them.
    pub usage: Option<Usage>,
    /// The finish reason: `stop`, `length`, `tool_calls`, `content_filter`, or the endpoint's word.
    pub finish_reason: Option<String>,
    /// The model that answered, as the endpoint names it.
    pub model: Option<String>,
    /// Data that the provider requires back, unchanged, when the conversation continues: signed thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Value>,
}

/// Texts to embed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EmbedRequest {
    /// The model's name without the provider prefix.
    pub model: String,
    /// In the order of the vectors.
    pub texts: Vec<String>,
    /// Vector dimensions, if the model supports a choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Sent as `Idempotency-Key`.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Text vectors.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// One per text, in the same order.
    pub vectors: Vec<Vec<f64>>,
    /// Token counts; `None` if the endpoint does not report them.
    pub usage: Option<Usage>,
    /// The model that answered, as the endpoint names it.
    pub model: Option<String>,
}
