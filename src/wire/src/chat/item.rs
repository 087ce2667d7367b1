//! Threads and what stands in them. Unset optional fields are absent.

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
    /// When it was made.
    pub created_at: Timestamp,
    /// Whether it takes messages.
    pub status: ThreadStatus,
    /// A page of its items; empty in events.
    pub items: Page<ThreadItem>,
    /// Its title, once it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Hosts that images of widgets may come from; absent: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_image_domains: Option<Vec<String>>,
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

impl ThreadStatus {
    /// All names, on the wire and in rows.
    pub const NAMES: [&'static str; 3] = ["active", "locked", "closed"];

    /// The status of this name.
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

    /// Why it accepts no messages, if that is known.
    #[must_use]
    pub fn into_reason(self) -> Option<String> {
        match self {
            Self::Active => None,
            Self::Locked { reason } | Self::Closed { reason } => reason,
        }
    }
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
pub struct ThreadItem {
    /// What it contains. First, since stored items are told apart by how their JSON begins.
    #[serde(flatten)]
    pub body: ItemBody,
    /// A prefix for its kind ([`ItemBody::prefix`]), and a key.
    pub id: String,
    /// The thread that contains it.
    pub thread_id: String,
    /// When it was accepted or started.
    pub created_at: Timestamp,
}

/// What an item contains, by its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ItemBody {
    /// What the user said.
    UserMessage {
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
        /// The parts of the answer.
        content: Vec<ContentPart>,
        /// Set if the answer ended before it was complete.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<MessageStatus>,
        /// Why it ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<IncompleteReason>,
    },
    /// A call of a tool that the client runs.
    ClientToolCall {
        /// Whether the client has returned its output.
        status: ToolCallStatus,
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        name: String,
        /// Its arguments.
        arguments: Map<String, Value>,
        /// Any JSON, once completed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output: Option<Value>,
    },
    /// Questions with a form for their answers.
    StructuredInput {
        /// Whether they were answered.
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
    /// A list of tasks.
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
        /// How far an open one is, from 0 to 1. Events of updates contain it; the item does not.
        #[serde(skip)]
        progress: Option<f64>,
    },
    /// A hint for the page: nothing more of this turn is visible.
    EndOfTurn,
    /// Context of the workflow for models; never sent to a client.
    HiddenContextItem {
        /// Any JSON.
        content: Value,
    },
    /// Context of the service for models; never sent to a client.
    SdkHiddenContext {
        /// Text.
        content: String,
    },
    /// A kind of a newer build, whose instance may run beside this one; not sent.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// How much of a widget without a text models read, bytes.
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

    /// The state of a complete item, without what only open ones have.
    #[must_use]
    pub fn complete(mut self) -> Self {
        if let Self::GeneratedImage { progress, .. } = &mut self {
            *progress = None;
        }
        self
    }

    /// Prefix of its id.
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

    /// Text of an assistant message.
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
