//! What goes to a model and what comes back.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{FileRef, Part};

/// Who says something.
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
    /// Its name on the wire.
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

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What.
    pub content: String,
    /// Files that the message refers to, as in `messages` of a graph. Providers do not read them: `parts` has what is
    /// sent of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// What is sent after `content`: texts and images. Providers read it in a user's message only. Not in the journal.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// Tools that the model wants called; of an assistant's message only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Which call this answers; of a tool's message only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// As in [`ModelAnswer::carry`]; of an assistant's message only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Value>,
}

impl Message {
    /// A message that is only text.
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

    /// The parts that a provider sends: of a user's message, and without blank texts, which endpoints refuse.
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
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// A model wants a tool called.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The model's id of the call.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Value,
}

/// One call of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ModelRequest {
    /// The name behind the provider's.
    pub model: String,
    /// The conversation, the latest message last.
    pub messages: Vec<Message>,
    /// Randomness, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The same seed asks for the same answer, where the endpoint takes one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// JSON Schema of the answer, which is then JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_schema: Option<Value>,
    /// Tools it may call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<Tool>,
    /// Sent as `Idempotency-Key`.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Tokens of a call, as the endpoint counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Of what it was sent.
    pub input_tokens: u64,
    /// Of what it wrote.
    pub output_tokens: u64,
    /// Of what it was sent, those that the endpoint had kept from before and charges less for.
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
    /// Tools it wants called.
    pub tool_calls: Vec<ToolCall>,
    /// Tokens; `None` where the endpoint does not say.
    pub usage: Option<Usage>,
    /// Why it ended: `stop`, `length`, `tool_calls`, `content_filter`, or the endpoint's own word.
    pub finish_reason: Option<String>,
    /// The model that answered, as the endpoint names it.
    pub model: Option<String>,
    /// What the provider wants to see again when the conversation continues, as it came: signed thoughts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carry: Option<Value>,
}

/// Texts that are to become vectors.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct EmbedRequest {
    /// The name behind the provider's.
    pub model: String,
    /// In the order of the vectors.
    pub texts: Vec<String>,
    /// Numbers of each vector, where the model lets one choose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<u32>,
    /// Sent as `Idempotency-Key`.
    #[serde(skip)]
    pub idempotency_key: Option<String>,
}

/// Vectors of texts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Embeddings {
    /// One for each text, in their order.
    pub vectors: Vec<Vec<f64>>,
    /// Tokens; `None` where the endpoint does not say.
    pub usage: Option<Usage>,
    /// The model that answered, as the endpoint names it.
    pub model: Option<String>,
}
