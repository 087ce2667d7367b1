//! Threads and their items. Unset optional fields are absent.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::attachment::Attachment;
use super::content::ContentPart;
use super::parts::{
    GeneratedImage, InputStatus, StructuredInput, Task, TaskList, ToolCallStatus, WidgetRoot,
};
use super::request::{InferenceOptions, UserMessageContent};
use crate::Timestamp;

/// A conversation, as clients see it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Thread {
    /// `thr_…`.
    pub id: String,
    /// Creation time.
    pub created_at: Timestamp,
    /// Whether it accepts messages.
    pub status: ThreadStatus,
    /// A page of its items; empty in events.
    pub items: Page<ThreadItem>,
    /// Its title, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Allowed hosts for widget images; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_image_domains: Option<Vec<String>>,
    /// Always `{}` for clients.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// Whether a thread accepts messages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ThreadStatus {
    /// It accepts messages.
    Active,
    /// It accepts no messages at present.
    Locked {
        /// Shown to the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// It never accepts messages again.
    Closed {
        /// Shown to the user.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

impl ThreadStatus {
    /// All names, on the wire and in rows.
    pub const NAMES: [&'static str; 3] = ["active", "locked", "closed"];

    /// Parses a status name.
    #[must_use]
    pub fn read(name: &str, reason: Option<String>) -> Option<Self> {
        match name {
            "active" => Some(Self::Active),
            "locked" => Some(Self::Locked { reason }),
            "closed" => Some(Self::Closed { reason }),
            _ => None,
        }
    }

    /// The name on the wire and in rows.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Locked { .. } => "locked",
            Self::Closed { .. } => "closed",
        }
    }

    /// The reason for accepting no messages, if known.
    #[must_use]
    pub fn into_reason(self) -> Option<String> {
        match self {
            Self::Active => None,
            Self::Locked { reason } | Self::Closed { reason } => reason,
        }
    }
}

/// A list page.
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

/// A thread entry.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadItem {
    /// The content. It comes first because stored items are distinguished by the start of their JSON.
    #[serde(flatten)]
    pub body: ItemBody,
    /// An id: the prefix of its kind ([`ItemBody::prefix`]), and a key.
    pub id: String,
    /// The thread that contains it.
    pub thread_id: String,
    /// Acceptance or start time.
    pub created_at: Timestamp,
}

/// An item's content, by kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    /// A user's message.
    UserMessage {
        /// Texts and tags.
        content: Vec<UserMessageContent>,
        /// Files, as objects.
        attachments: Vec<Attachment>,
        /// The text the user replied to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        quoted_text: Option<String>,
        /// The model and the tool that the user chose.
        inference_options: InferenceOptions,
    },
    /// The workflow's answer.
    AssistantMessage {
        /// The answer's parts.
        content: Vec<ContentPart>,
        /// Set if the answer ended before it was complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<MessageStatus>,
        /// The reason for the incomplete end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IncompleteReason>,
    },
    /// A tool call that the client runs.
    ClientToolCall {
        /// Whether the client has returned its output.
        status: ToolCallStatus,
        /// The call's id.
        call_id: String,
        /// The tool's name.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// Any JSON, once completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// Questions with a form for their answers.
    StructuredInput {
        /// Whether the user has answered them.
        status: InputStatus,
        /// The questions.
        inputs: Vec<StructuredInput>,
    },
    /// A widget.
    Widget {
        /// Its root component.
        widget: WidgetRoot,
        /// Text for the clipboard, and for models.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        copy_text: Option<String>,
    },
    /// A task list.
    Workflow {
        /// The tasks with their summary.
        workflow: TaskList,
    },
    /// A single task.
    Task {
        /// The task.
        task: Task,
    },
    /// A generated image.
    GeneratedImage {
        /// The image, once there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<GeneratedImage>,
        /// An unfinished image's progress, from 0 to 1. Update events contain it; the item does not.
        #[serde(skip)]
        progress: Option<f64>,
    },
    /// A hint for the page: the turn shows nothing more.
    EndOfTurn,
    /// Context from the workflow for models; never sent to a client.
    HiddenContextItem {
        /// Any JSON.
        content: Value,
    },
    /// Context from the service for models; never sent to a client.
    SdkHiddenContext {
        /// Text.
        content: String,
    },
    /// A kind from a newer build, whose instance may run at the same time; not sent.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// Maximum bytes that models read from a widget without a text.
const WIDGET_TEXT: usize = 8 * 1024;

impl ThreadItem {
    /// The item's id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether it is for models only and never sent to a client.
    #[must_use]
    pub fn is_hidden(&self) -> bool {
        matches!(
            self.body,
            ItemBody::HiddenContextItem { .. } | ItemBody::SdkHiddenContext { .. } | ItemBody::Unknown
        )
    }

    /// The role and the text for models; `None` if models do not see the item.
    #[must_use]
    pub fn as_message(&self) -> Option<(&'static str, String)> {
        self.body.as_message()
    }
}

impl ItemBody {
    /// A complete assistant message.
    #[must_use]
    pub fn message(text: impl Into<String>) -> Self {
        Self::AssistantMessage { content: vec![ContentPart::text(text)], status: None, reason: None }
    }

    /// Completes the item: removes fields that only unfinished items have.
    #[must_use]
    pub fn complete(mut self) -> Self {
        if let Self::GeneratedImage { progress, .. } = &mut self {
            *progress = None;
        }
        self
    }

    /// The id prefix.
    #[must_use]
    pub const fn prefix(&self) -> &'static str {
        match self {
            Self::UserMessage { .. }
            | Self::AssistantMessage { .. }
            | Self::StructuredInput { .. }
            | Self::Widget { .. }
            | Self::GeneratedImage { .. } => "msg",
            Self::ClientToolCall { .. } => "tc",
            Self::Workflow { .. } => "wf",
            Self::Task { .. } => "tsk",
            Self::EndOfTurn => "eot",
            Self::HiddenContextItem { .. } => "hcx",
            Self::SdkHiddenContext { .. } => "shcx",
            Self::Unknown => "itm",
        }
    }

    /// An assistant message's text.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        match self {
            Self::AssistantMessage { content, .. } => {
                Some(content.iter().map(|ContentPart::OutputText(part)| part.text.as_str()).collect())
            }
            _ => None,
        }
    }

    /// See [`ThreadItem::as_message`].
    fn as_message(&self) -> Option<(&'static str, String)> {
        match self {
            Self::UserMessage { content, .. } => {
                Some(("user", content.iter().map(UserMessageContent::model_text).collect()))
            }
            Self::AssistantMessage { .. } => Some(("assistant", self.text()?)),
            Self::StructuredInput { status: InputStatus::Pending, .. } => None,
            Self::StructuredInput { inputs, .. } => {
                let lines: Vec<String> = inputs.iter().map(StructuredInput::line).collect();
                Some(("user", lines.join("\n")))
            }
            Self::Widget { widget, copy_text } => {
                let text = copy_text.clone().unwrap_or_else(|| {
                    let mut text = Value::Object(widget.0.clone()).to_string();
                    text.truncate(text.floor_char_boundary(WIDGET_TEXT));
                    text
                });
                Some(("assistant", text))
            }
            Self::GeneratedImage { .. } => Some(("assistant", "[image]".to_owned())),
            Self::HiddenContextItem { content: Value::String(text) } => Some(("system", text.clone())),
            Self::HiddenContextItem { content } => Some(("system", content.to_string())),
            Self::SdkHiddenContext { content } => Some(("system", content.clone())),
            Self::ClientToolCall { .. }
            | Self::Workflow { .. }
            | Self::Task { .. }
            | Self::EndOfTurn
            | Self::Unknown => None,
        }
    }
}

/// A message's completeness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MessageStatus {
    /// It ended before it was complete.
    Incomplete,
}

/// The reason for an incomplete message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum IncompleteReason {
    /// The visitor stopped it, or the thread was deleted.
    Stopped,
    /// Its last reader left and did not return in time.
    Abandoned,
    /// The workflow failed.
    Failed,
}
