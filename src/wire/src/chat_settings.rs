//! What the chat of a workflow offers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::stated;

/// Changes of a chat's settings.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
    /// How threads get their titles.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<ChatTitle>,
    /// What the models may use each day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ChatLimits>,
    /// Days after its last item until a thread is deleted, 1 to 3,650; 0: content is erased an hour after the last turn; null: never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub retention_days: Option<Option<u32>>,
}

/// What the models of a chat may use each UTC day; null: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatLimits {
    /// Input and output tokens of one session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_tokens_per_day: Option<u64>,
    /// US dollars of one session, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_usd_per_day: Option<f64>,
    /// Input and output tokens of the workflow's chat.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// US dollars of the workflow's chat, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
}

impl ChatLimits {
    /// Whether anything is limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// What the models of a chat have used on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatUsageRecord {
    /// The UTC day, `YYYY-MM-DD`.
    pub day: String,
    /// Sessions with usage.
    pub sessions: u64,
    /// Turns that have ended, of versions that may use models.
    pub turns: u64,
    /// Calls that a model answered, or that were given up.
    pub calls: u64,
    /// Tokens that the models read.
    pub input_tokens: u64,
    /// Tokens that the models wrote.
    pub output_tokens: u64,
    /// US dollars, of models with a price.
    pub usd: f64,
}

/// How the threads of a chat get their titles.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChatTitle {
    /// `words`: from the first words of the first message.
    Words(TitleByWords),
    /// By a model, while the first turn executes; until then, and if it fails, by words.
    Model(TitleModel),
}

impl Default for ChatTitle {
    fn default() -> Self {
        Self::Words(TitleByWords::Words)
    }
}

/// `words`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum TitleByWords {
    /// From the first words of the first message.
    Words,
}

/// A model that a setting names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelBinding {
    /// `<provider>/<model>`.
    pub model: String,
    /// Name of the secret in the vault that is the endpoint's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Address of another endpoint than the operator's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
}

/// The model that writes titles.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TitleModel {
    /// The model and its endpoint.
    #[serde(flatten)]
    pub binding: ModelBinding,
    /// What the model is to write, instead of a short title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The model that transcribes recordings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TranscriptionSettings {
    /// The model and its endpoint.
    #[serde(flatten)]
    pub binding: ModelBinding,
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// How threads get their titles.
    #[serde(default)]
    pub title: ChatTitle,
    /// What the models may use each day.
    #[serde(default)]
    pub limits: ChatLimits,
    /// Days after its last item until a thread is deleted; 0: content is erased an hour after the last turn; null: never.
    #[serde(default)]
    pub retention_days: Option<u32>,
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
            title: ChatTitle::default(),
            limits: ChatLimits::default(),
            retention_days: None,
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
        let ChatSettings {
            start_prompts,
            models,
            busy,
            uploads,
            transcription,
            title: _,
            limits: _,
            retention_days: _,
        } = settings;
        Self { start_prompts, models, busy, uploads, dictation: transcription.is_some() }
    }
}
