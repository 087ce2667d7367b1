//! What the chat of a workflow offers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::stated;

/// Changes of a chat's settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateChatSettings {
    /// At most 20 objects `{label, prompt, icon?}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_prompts: Option<Vec<Value>>,
    /// At most 50 objects `{id, label, description?, disabled?, default?}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub models: Option<Vec<Value>>,
    /// What becomes of a message while another is being answered in its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyThread>,
    /// Whether files are accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<bool>,
    /// The model that transcribes recordings; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub transcription: Option<Option<TranscriptionSettings>>,
}

/// The model that transcribes recordings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptionSettings {
    /// `<provider>/<model>`.
    pub model: String,
    /// Name of the secret in the vault that is the endpoint's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Address of another endpoint than the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The language that is spoken, such as `en`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Words that the model may not know, such as names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// What becomes of a message while another is being answered in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BusyThread {
    /// It waits for its turn.
    #[default]
    Enqueue,
    /// It is refused.
    Reject,
    /// The answer under way is stopped, and it is answered.
    Interrupt,
}

impl BusyThread {
    /// Every choice.
    pub const ALL: [Self; 3] = [Self::Enqueue, Self::Reject, Self::Interrupt];

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Enqueue => "enqueue",
            Self::Reject => "reject",
            Self::Interrupt => "interrupt",
        }
    }
}

/// The settings of a workflow's chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatSettings {
    /// Prompts to start with.
    #[serde(default)]
    pub start_prompts: Vec<Value>,
    /// Models to choose from.
    #[serde(default)]
    pub models: Vec<Value>,
    /// What becomes of a message while another is being answered in its thread.
    #[serde(default)]
    pub busy: BusyThread,
    /// Whether files are accepted.
    #[serde(default = "yes")]
    pub uploads: bool,
    /// The model that transcribes recordings, if there is one.
    #[serde(default)]
    pub transcription: Option<TranscriptionSettings>,
}

const fn yes() -> bool {
    true
}

impl Default for ChatSettings {
    fn default() -> Self {
        Self {
            start_prompts: Vec::new(),
            models: Vec::new(),
            busy: BusyThread::default(),
            uploads: true,
            transcription: None,
        }
    }
}

/// What anyone may know of the chat of a published workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublicChat {
    /// Prompts to start with.
    #[serde(default)]
    pub start_prompts: Vec<Value>,
    /// Models to choose from.
    #[serde(default)]
    pub models: Vec<Value>,
    /// What becomes of a message while another is being answered in its thread.
    #[serde(default)]
    pub busy: BusyThread,
    /// Whether files are accepted.
    #[serde(default)]
    pub uploads: bool,
    /// Whether recordings are transcribed.
    #[serde(default)]
    pub dictation: bool,
}

impl From<ChatSettings> for PublicChat {
    fn from(settings: ChatSettings) -> Self {
        let ChatSettings { start_prompts, models, busy, uploads, transcription } = settings;
        Self { start_prompts, models, busy, uploads, dictation: transcription.is_some() }
    }
}
