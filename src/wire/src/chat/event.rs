//! Chat stream events. Unset optional fields are absent; clients ignore types they do not know.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{Annotation, ContentPart, OutputText};
use super::item::{Thread, ThreadItem};
use super::parts::{GeneratedImage, Task, WidgetRoot};

/// A chat stream event.
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
    /// An item has started; it is not stored yet.
    #[serde(rename = "thread.item.added")]
    ItemAdded {
        /// Its state so far.
        item: ThreadItem,
    },
    /// A started item has changed.
    #[serde(rename = "thread.item.updated")]
    ItemUpdated {
        /// The started item.
        item_id: String,
        /// The change.
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
        /// The item's id.
        item_id: String,
    },
    /// An item has new content.
    #[serde(rename = "thread.item.replaced")]
    ItemReplaced {
        /// The new content.
        item: ThreadItem,
    },
    /// The client's options for this stream.
    #[serde(rename = "stream_options")]
    StreamOptions {
        /// The options.
        stream_options: StreamOptions,
    },
    /// Workflow progress; not stored.
    #[serde(rename = "progress_update")]
    ProgressUpdate {
        /// One line.
        text: String,
        /// An icon's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        icon: Option<String>,
    },
    /// An effect for the page to perform; not stored.
    #[serde(rename = "client_effect")]
    ClientEffect {
        /// The effect's name.
        name: String,
        /// The effect's arguments.
        #[serde(default)]
        data: Map<String, Value>,
    },
    /// A message outside the conversation.
    #[serde(rename = "notice")]
    Notice {
        /// The urgency.
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
        /// The widget's parser accepts only these two.
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

/// A change to a started item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type")]
pub enum ItemUpdate {
    /// The interface's text piece; pieces are appended.
    #[serde(rename = "content_part_added")]
    PieceAdded {
        /// `{"type":"output_text","text":…}`.
        part: PiecePart,
    },
    /// ChatKit: a part has started.
    #[serde(rename = "assistant_message.content_part.added")]
    PartAdded {
        /// The part's index.
        content_index: u32,
        /// Its content so far.
        content: ContentPart,
    },
    /// ChatKit: more text in a part.
    #[serde(rename = "assistant_message.content_part.text_delta")]
    TextDelta {
        /// The part's index.
        content_index: u32,
        /// The text to append.
        delta: String,
    },
    /// ChatKit: an annotation in a part.
    #[serde(rename = "assistant_message.content_part.annotation_added")]
    AnnotationAdded {
        /// The part's index.
        content_index: u32,
        /// The annotation's index.
        annotation_index: u32,
        /// The annotation.
        annotation: Annotation,
    },
    /// ChatKit: a complete part.
    #[serde(rename = "assistant_message.content_part.done")]
    PartDone {
        /// The part's index.
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
    /// A widget component changed.
    #[serde(rename = "widget.component.updated")]
    ComponentUpdated {
        /// The component's id.
        component_id: String,
        /// The whole component.
        component: Map<String, Value>,
    },
    /// More text in a widget component.
    #[serde(rename = "widget.streaming_text.value_delta")]
    ComponentText {
        /// The component's id.
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
    /// A task in a list changed.
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

/// A text piece in the interface's dialect.
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

/// The client's options for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StreamOptions {
    /// Whether to show a stop button.
    pub allow_cancel: bool,
}

/// A notice's urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum NoticeLevel {
    /// Information.
    Info,
    /// A warning.
    Warning,
    /// Requires action.
    Danger,
}

/// The two codes that the widget's parser accepts.
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
    /// An error with one of our codes and its public message. It never allows a retry that cannot help, whatever
    /// `allow_retry` says.
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
