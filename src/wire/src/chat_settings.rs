//! A workflow's chat settings.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::workflow::stated;

/// Changes to chat settings.
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
    /// Handling of a message that arrives during another turn in its thread.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy: Option<BusyThread>,
    /// Whether the chat accepts files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uploads: Option<bool>,
    /// The model that transcribes recordings; null: none.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub transcription: Option<Option<TranscriptionSettings>>,
    /// Thread title source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<ChatTitle>,
    /// Daily model usage limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<ChatLimits>,
    /// Days from a thread's last item until it is deleted, 1 to 3,650; 0: content is erased an hour after the last
    /// turn; null: never.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "stated")]
    pub retention_days: Option<Option<u32>>,
}

/// Limits for the chat's model usage per UTC day; null: unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatLimits {
    /// Input and output tokens per session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_tokens_per_day: Option<u64>,
    /// US dollars per session, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_usd_per_day: Option<f64>,
    /// Input and output tokens of the workflow's chat, all sessions together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// US dollars of the workflow's chat, all sessions together, by the price table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_per_day: Option<f64>,
}

impl ChatLimits {
    /// Whether no limit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A chat's model usage on one day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatUsageRecord {
    /// The UTC day, `YYYY-MM-DD`.
    pub day: String,
    /// Sessions with usage.
    pub sessions: u64,
    /// Ended turns, for versions that may use models.
    pub turns: u64,
    /// Calls that were answered or given up.
    pub calls: u64,
    /// Tokens read by models.
    pub input_tokens: u64,
    /// Tokens written by models.
    pub output_tokens: u64,
    /// US dollars, for models with a price.
    pub usd: f64,
}

/// A chat's thread title source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChatTitle {
    /// `words`: from the first message's first words.
    Words(TitleByWords),
    /// Written by a model during the first turn; until then, and if it fails, by words.
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
    /// From the first message's first words.
    Words,
}

/// A model in a setting.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ModelBinding {
    /// `<provider>/<model>`.
    pub model: String,
    /// Name of the vault secret with the endpoint's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Address of an endpoint other than the operator's.
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
    /// Instructions that replace the default, a short title.
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
    /// The spoken language, such as `en`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Words that the model may not know, such as names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// Handling of a message that arrives during another turn in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum BusyThread {
    /// The message waits for its turn.
    #[default]
    Enqueue,
    /// The message is rejected.
    Reject,
    /// The current turn is stopped, and the new message is answered.
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

/// A workflow's chat settings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatSettings {
    /// Suggested first prompts.
    #[serde(default)]
    pub start_prompts: Vec<Value>,
    /// Models to choose from.
    #[serde(default)]
    pub models: Vec<Value>,
    /// Handling of a message that arrives during another turn in its thread.
    #[serde(default)]
    pub busy: BusyThread,
    /// Whether the chat accepts files.
    #[serde(default = "yes")]
    pub uploads: bool,
    /// The model that transcribes recordings, if any.
    #[serde(default)]
    pub transcription: Option<TranscriptionSettings>,
    /// Thread title source.
    #[serde(default)]
    pub title: ChatTitle,
    /// Daily model usage limits.
    #[serde(default)]
    pub limits: ChatLimits,
    /// Days from a thread's last item until it is deleted; 0: content is erased an hour after the last turn; null:
    /// never.
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

/// A published workflow's public chat settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublicChat {
    /// Suggested first prompts.
    #[serde(default)]
    pub start_prompts: Vec<Value>,
    /// Models to choose from.
    #[serde(default)]
    pub models: Vec<Value>,
    /// Handling of a message that arrives during another turn in its thread.
    #[serde(default)]
    pub busy: BusyThread,
    /// Whether the chat accepts files.
    #[serde(default)]
    pub uploads: bool,
    /// Whether the chat transcribes recordings.
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
