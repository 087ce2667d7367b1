//! The events of a chat stream. Unset optional fields are absent; clients ignore types they do not know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{Annotation, ContentPart, OutputText};
use super::item::{Thread, ThreadItem};
use super::parts::{GeneratedImage, Task, WidgetRoot};

/// One event of a chat stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ChatEvent {
    /// A new thread.
    #[serde(rename = "thread.created")]
    ThreadCreated {
        /// The thread, without items.
        thread: Thread,
    },
    /// The thread's title or status changed.
    #[serde(rename = "thread.updated")]
    ThreadUpdated {
        /// The thread, without items.
        thread: Thread,
    },
    /// An item was begun; it is not stored yet.
    #[serde(rename = "thread.item.added")]
    ItemAdded {
        /// As far as it has got.
        item: ThreadItem,
    },
    /// A started item continues.
    #[serde(rename = "thread.item.updated")]
    ItemUpdated {
        /// The begun item.
        item_id: String,
        /// What is new.
        update: ItemUpdate,
    },
    /// An item is complete and stored.
    #[serde(rename = "thread.item.done")]
    ItemDone {
        /// Its final state.
        item: ThreadItem,
    },
    /// An item was deleted.
    #[serde(rename = "thread.item.removed")]
    ItemRemoved {
        /// Which.
        item_id: String,
    },
    /// An item now reads otherwise.
    #[serde(rename = "thread.item.replaced")]
    ItemReplaced {
        /// How it reads now.
        item: ThreadItem,
    },
    /// What the client may do with this stream.
    #[serde(rename = "stream_options")]
    StreamOptions {
        /// The options.
        stream_options: StreamOptions,
    },
    /// What the workflow is doing; not stored.
    #[serde(rename = "progress_update")]
    ProgressUpdate {
        /// One line.
        text: String,
        /// An icon's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
    },
    /// Something the page shall do; not stored.
    #[serde(rename = "client_effect")]
    ClientEffect {
        /// What.
        name: String,
        /// With what.
        #[serde(default)]
        data: Map<String, Value>,
    },
    /// A message outside the conversation.
    #[serde(rename = "notice")]
    Notice {
        /// How urgent.
        level: NoticeLevel,
        /// Markdown.
        message: String,
        /// A heading.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        title: Option<String>,
    },
    /// The turn failed; nothing follows.
    #[serde(rename = "error")]
    Error {
        /// The widget's parser takes only these two.
        code: StreamErrorCode,
        /// For the user; only with `custom`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// Whether a retry may help.
        allow_retry: bool,
        /// Our stable dotted code.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<String>,
    },
}

/// What is new in a begun item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ItemUpdate {
    /// The interface's piece of text; pieces are appended.
    #[serde(rename = "content_part_added")]
    PieceAdded {
        /// `{"type":"output_text","text":…}`.
        part: PiecePart,
    },
    /// ChatKit: a part begins.
    #[serde(rename = "assistant_message.content_part.added")]
    PartAdded {
        /// Which part.
        content_index: u32,
        /// As far as it has got.
        content: ContentPart,
    },
    /// ChatKit: more text of a part.
    #[serde(rename = "assistant_message.content_part.text_delta")]
    TextDelta {
        /// Which part.
        content_index: u32,
        /// The text to append.
        delta: String,
    },
    /// ChatKit: a mark in a part.
    #[serde(rename = "assistant_message.content_part.annotation_added")]
    AnnotationAdded {
        /// Which part.
        content_index: u32,
        /// Which annotation.
        annotation_index: u32,
        /// The mark.
        annotation: Annotation,
    },
    /// ChatKit: a part is complete.
    #[serde(rename = "assistant_message.content_part.done")]
    PartDone {
        /// Which part.
        content_index: u32,
        /// The whole part.
        content: ContentPart,
    },
    /// A widget changed.
    #[serde(rename = "widget.root.updated")]
    WidgetUpdated {
        /// The whole widget.
        widget: WidgetRoot,
    },
    /// One component of a widget changed.
    #[serde(rename = "widget.component.updated")]
    ComponentUpdated {
        /// Id of the component.
        component_id: String,
        /// The whole component.
        component: Map<String, Value>,
    },
    /// The text of a widget's component continues.
    #[serde(rename = "widget.streaming_text.value_delta")]
    ComponentText {
        /// Id of the component.
        component_id: String,
        /// The text to append.
        delta: String,
        /// Whether the text is complete.
        done: bool,
    },
    /// A task was appended to a list.
    #[serde(rename = "workflow.task.added")]
    TaskAdded {
        /// Its index.
        task_index: u32,
        /// The task.
        task: Task,
    },
    /// A task of a list changed.
    #[serde(rename = "workflow.task.updated")]
    TaskUpdated {
        /// Its index.
        task_index: u32,
        /// The task.
        task: Task,
    },
    /// A generated image changed.
    #[serde(rename = "generated_image.updated")]
    ImageUpdated {
        /// The image.
        image: GeneratedImage,
        /// From 0 to 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        progress: Option<f64>,
    },
}

/// A piece of text in the interface's dialect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "PieceText", transform = crate::schema::tagged("output_text")))]
#[serde(tag = "type", rename = "output_text")]
pub struct PiecePart {
    /// The text to append.
    pub text: String,
}

impl ItemUpdate {
    /// The text it appends, if it appends any.
    #[must_use]
    pub fn appended_text(&self) -> Option<&str> {
        match self {
            Self::PieceAdded { part } => Some(&part.text),
            Self::TextDelta { delta, .. } => Some(delta),
            Self::PartAdded { content: ContentPart::OutputText(OutputText { text, .. }), .. } => Some(text),
            _ => None,
        }
    }
}

/// What the client may do with a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamOptions {
    /// Whether to show a stop button.
    pub allow_cancel: bool,
}

/// How urgent a notice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NoticeLevel {
    /// To know.
    Info,
    /// To mind.
    Warning,
    /// To act on.
    Danger,
}

/// The two codes that the widget's parser takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum StreamErrorCode {
    /// An unexpected failure, without a message.
    #[serde(rename = "stream.error")]
    Stream,
    /// A failure with a message.
    #[serde(rename = "custom")]
    Custom,
}

impl ChatEvent {
    /// An error that names one of our codes, with its public message. What a retry cannot help is never said to allow
    /// one, whatever the turn would allow.
    #[must_use]
    pub fn failure(code: crate::ErrorCode, allow_retry: bool) -> Self {
        Self::Error {
            code: StreamErrorCode::Custom,
            message: Some(code.message().to_owned()),
            allow_retry: allow_retry && code.retry_may_help(),
            error_code: Some(code.as_str().to_owned()),
        }
    }
}
