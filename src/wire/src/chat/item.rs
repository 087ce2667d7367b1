//! Threads and what stands in them. Unset optional fields are absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::request::{InferenceOptions, UserMessageContent};
use crate::Timestamp;

/// A conversation, as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// `thr_…`.
    pub id: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it takes messages.
    pub status: ThreadStatus,
    /// A page of its items; empty in events.
    pub items: Page<ThreadItem>,
    /// Its title, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Always `{}` towards clients.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// Whether a thread takes messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ThreadStatus {
    /// It does.
    Active,
    /// Not at present.
    Locked {
        /// Shown to the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Never again.
    Closed {
        /// Shown to the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{T}Page"))]
pub struct Page<T> {
    /// The records.
    pub data: Vec<T>,
    /// Whether more follow.
    pub has_more: bool,
    /// Id of the last record, when more follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self { data: Vec::new(), has_more: false, after: None }
    }
}

/// One entry of a thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ThreadItem {
    /// What the user said.
    UserMessage {
        /// `msg_…`.
        id: String,
        /// The thread it stands in.
        thread_id: String,
        /// When it was accepted.
        created_at: Timestamp,
        /// Texts and tags.
        content: Vec<UserMessageContent>,
        /// Files, as objects.
        attachments: Vec<Attachment>,
        /// The text the user replied to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quoted_text: Option<String>,
        /// Model and tool the user chose.
        inference_options: InferenceOptions,
    },
    /// What the workflow answered.
    AssistantMessage {
        /// `msg_…`.
        id: String,
        /// The thread it stands in.
        thread_id: String,
        /// When it was begun.
        created_at: Timestamp,
        /// The parts of the answer.
        content: Vec<ContentPart>,
        /// Set if the answer ended before it was complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<MessageStatus>,
        /// Why it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IncompleteReason>,
    },
    /// A note to the model; never sent to a client.
    SdkHiddenContext {
        /// `shcx_…`.
        id: String,
        /// The thread it stands in.
        thread_id: String,
        /// When it was written.
        created_at: Timestamp,
        /// What the model is told.
        content: String,
    },
}

impl ThreadItem {
    /// The item's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::UserMessage { id, .. }
            | Self::AssistantMessage { id, .. }
            | Self::SdkHiddenContext { id, .. } => id,
        }
    }

    /// Whether it is for the model alone and never sent to a client.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        match self {
            Self::UserMessage { .. } | Self::AssistantMessage { .. } => false,
            Self::SdkHiddenContext { .. } => true,
        }
    }

    /// The text a model reads, and the role it reads it in.
    #[must_use]
    pub fn as_message(&self) -> (&'static str, String) {
        match self {
            Self::UserMessage { content, .. } => {
                ("user", content.iter().map(UserMessageContent::model_text).collect())
            }
            Self::AssistantMessage { content, .. } => (
                "assistant",
                content.iter().map(|ContentPart::OutputText(part)| part.text.as_str()).collect(),
            ),
            Self::SdkHiddenContext { content, .. } => ("system", content.clone()),
        }
    }
}

/// What a message says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// It ended before it was complete.
    Incomplete,
}

/// Why a message is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IncompleteReason {
    /// The visitor stopped it, or the thread was deleted.
    Stopped,
    /// Its last reader left, and did not come back in time.
    Abandoned,
    /// The workflow failed.
    Failed,
}

/// A file in a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Attachment {
    /// `atc_…`.
    pub id: String,
    /// The file's name.
    pub name: String,
    /// Its media type.
    pub mime_type: String,
    /// `file` or `image`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Opaque; never a server path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_path: Option<String>,
    /// Images only: where to load them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview_url: Option<String>,
}

/// A part of an assistant message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// Text.
    OutputText(OutputText),
}

/// Text with its annotations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputText {
    /// The text.
    pub text: String,
    /// Sources and entities it names.
    #[serde(default)]
    pub annotations: Vec<Annotation>,
}

impl ContentPart {
    /// Plain text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self::OutputText(OutputText { text: text.into(), annotations: Vec::new() })
    }
}

/// A mark in a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Annotation", transform = crate::schema::tagged("annotation")))]
#[serde(tag = "type", rename = "annotation")]
pub struct Annotation {
    /// What it points at.
    pub source: Source,
    /// Character position of the mark; equal positions group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub index: Option<u64>,
}

/// What an annotation points at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// A file.
    File {
        /// Shown to the user.
        title: String,
        /// Its name.
        filename: String,
    },
    /// A page.
    Url {
        /// Shown to the user.
        title: String,
        /// Its address.
        url: String,
        /// Who wrote it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attribution: Option<String>,
    },
    /// A thing the page knows.
    Entity {
        /// Shown to the user.
        title: String,
        /// The page's id of it.
        id: String,
        /// Whether it can be clicked.
        #[serde(default)]
        interactive: bool,
        /// For the page.
        #[serde(default)]
        data: Map<String, Value>,
    },
}
