//! Chat requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::attachment::Attachment;
use super::item::{Page, Thread, ThreadItem};
use super::parts::InputSubmission;

/// A chat request, after its `workflow_id` and access are resolved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatRequest {
    /// The operation.
    #[serde(flatten)]
    pub operation: ChatOperation,
    /// Free-form client data.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// `POST /api/chat`: a request with its workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatCall {
    /// The workflow's UUID.
    pub workflow_id: String,
    /// The request.
    #[serde(flatten)]
    pub request: ChatRequest,
}

/// An answer to a request that starts no turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChatAnswer {
    /// A thread.
    Thread(Box<Thread>),
    /// A thread page.
    Threads(Page<Thread>),
    /// An item page.
    Items(Page<ThreadItem>),
    /// An attachment with its upload instructions.
    Attachment(Box<Attachment>),
    /// A recording's text.
    Transcript {
        /// The text.
        text: String,
    },
    /// A widget changed by an action.
    Updated {
        /// Its new state.
        updated_item: Box<ThreadItem>,
    },
    /// The operation is done.
    Done {},
}

/// A chat request's operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "params")]
pub enum ChatOperation {
    /// Starts a thread with a first message.
    #[serde(rename = "threads.create")]
    CreateThread {
        /// The message.
        input: UserMessageInput,
    },
    /// Adds a message to a thread.
    #[serde(rename = "threads.add_user_message")]
    AddUserMessage {
        /// The thread.
        thread_id: String,
        /// The message.
        input: UserMessageInput,
    },
    /// Answers a message again.
    #[serde(rename = "threads.retry_after_item")]
    RetryAfterItem {
        /// The thread.
        thread_id: String,
        /// The user's message.
        item_id: String,
    },
    /// Reads a thread with its first items.
    #[serde(rename = "threads.get_by_id")]
    GetThread {
        /// The thread.
        thread_id: String,
    },
    /// Lists the caller's threads.
    #[serde(rename = "threads.list")]
    ListThreads(PageRequest),
    /// Lists a thread's items.
    #[serde(rename = "items.list")]
    ListItems {
        /// The thread.
        thread_id: String,
        /// The page.
        #[serde(flatten)]
        page: PageRequest,
    },
    /// Renames a thread.
    #[serde(rename = "threads.update")]
    UpdateThread {
        /// The thread.
        thread_id: String,
        /// Its new title.
        title: String,
    },
    /// Deletes a thread.
    #[serde(rename = "threads.delete")]
    DeleteThread {
        /// The thread.
        thread_id: String,
    },
    /// Rates items.
    #[serde(rename = "items.feedback")]
    ItemFeedback {
        /// The thread.
        thread_id: String,
        /// The items.
        item_ids: Vec<String>,
        /// The rating.
        kind: FeedbackKind,
        /// A comment in the caller's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Answers an item's questions, which continues the turn.
    #[serde(rename = "threads.add_structured_input")]
    AddStructuredInput {
        /// The thread.
        thread_id: String,
        /// The item with the questions.
        item_id: String,
        /// The answers.
        input: InputSubmission,
    },
    /// Returns the output of the tool call that the thread ends with, which continues its turn.
    #[serde(rename = "threads.add_client_tool_output")]
    AddClientToolOutput {
        /// The thread.
        thread_id: String,
        /// Any JSON.
        result: Value,
    },
    /// Performs a widget's or the page's action, answered by a turn.
    #[serde(rename = "threads.custom_action")]
    CustomAction(ActionRequest),
    /// Performs an action that only changes its widget.
    #[serde(rename = "threads.sync_custom_action")]
    SyncCustomAction(ActionRequest),
    /// Announces a file to upload.
    #[serde(rename = "attachments.create")]
    CreateAttachment {
        /// The file's name.
        name: String,
        /// Bytes.
        size: u64,
        /// Its media type.
        mime_type: String,
    },
    /// Deletes an uploaded file that no message contains.
    #[serde(rename = "attachments.delete")]
    DeleteAttachment {
        /// The attachment.
        attachment_id: String,
    },
    /// Transcribes a recording.
    #[serde(rename = "input.transcribe")]
    Transcribe {
        /// The recording.
        audio_base64: String,
        /// Its media type, with parameters.
        mime_type: String,
    },
}

impl ChatOperation {
    /// The operation's thread, if it exists already.
    #[must_use]
    pub fn thread_id(&self) -> Option<&str> {
        match self {
            Self::CreateThread { .. }
            | Self::ListThreads(_)
            | Self::CreateAttachment { .. }
            | Self::DeleteAttachment { .. }
            | Self::Transcribe { .. } => None,
            Self::AddUserMessage { thread_id, .. }
            | Self::RetryAfterItem { thread_id, .. }
            | Self::AddStructuredInput { thread_id, .. }
            | Self::AddClientToolOutput { thread_id, .. }
            | Self::GetThread { thread_id }
            | Self::ListItems { thread_id, .. }
            | Self::UpdateThread { thread_id, .. }
            | Self::DeleteThread { thread_id }
            | Self::ItemFeedback { thread_id, .. } => Some(thread_id),
            Self::CustomAction(request) | Self::SyncCustomAction(request) => Some(&request.thread_id),
        }
    }
}

/// An action and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionRequest {
    /// The thread.
    pub thread_id: String,
    /// The widget, unless the action comes from the page itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub item_id: Option<String>,
    /// The action.
    pub action: Action,
}

/// An action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Action {
    /// Its name; 1 to 200 characters.
    #[serde(rename = "type")]
    pub kind: String,
    /// Any JSON, with a form's values. It comes unchecked from a browser.
    #[serde(default)]
    pub payload: Value,
}

/// A visitor's rating of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    /// A good item.
    Positive,
    /// A bad item.
    Negative,
}

impl FeedbackKind {
    /// The name on the wire and in rows.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Positive => "positive",
            Self::Negative => "negative",
        }
    }

    /// Parses a kind.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Positive, Self::Negative].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The requested part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageRequest {
    /// Maximum records; 20 by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// The order; newest first by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The id of the last record before the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl PageRequest {
    /// Default records per page.
    pub const DEFAULT: u32 = 20;
    /// Maximum records per page; larger requests get this number.
    pub const MOST: u32 = 100;

    /// The effective record limit.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.limit.filter(|limit| *limit > 0).unwrap_or(Self::DEFAULT).min(Self::MOST)
    }

    /// The effective order.
    #[must_use]
    pub fn direction(&self) -> Order {
        self.order.unwrap_or(Order::Desc)
    }
}

/// Record order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Oldest first.
    Asc,
    /// Newest first.
    Desc,
}

/// A user's message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserMessageInput {
    /// Texts and tags.
    pub content: Vec<UserMessageContent>,
    /// Uploaded files.
    #[serde(default)]
    pub attachments: Vec<AttachmentRef>,
    /// The text the user replies to.
    #[serde(default)]
    pub quoted_text: Option<String>,
    /// The model and the tool that the user chose.
    #[serde(default)]
    pub inference_options: InferenceOptions,
}

impl UserMessageInput {
    /// A message with one text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![UserMessageContent::InputText { text: text.into() }], ..Self::default() }
    }

    /// The message for a model.
    #[must_use]
    pub fn model_text(&self) -> String {
        self.content.iter().map(UserMessageContent::model_text).collect()
    }
}

/// A user message part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum UserMessageContent {
    /// Text.
    InputText {
        /// The text.
        text: String,
    },
    /// An @-mention.
    InputTag {
        /// The page's id for it.
        id: String,
        /// Shown as `@text`.
        text: String,
        /// Data for the page.
        #[serde(default)]
        data: Map<String, Value>,
        /// Its group in the menu.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        group: Option<String>,
        /// Whether it can be clicked.
        #[serde(default)]
        interactive: bool,
    },
}

impl UserMessageContent {
    /// The part for a model.
    #[must_use]
    pub fn model_text(&self) -> String {
        match self {
            Self::InputText { text } => text.clone(),
            Self::InputTag { text, .. } => format!("@{text}"),
        }
    }
}

/// An uploaded file, by its id or by the object from the upload's answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum AttachmentRef {
    /// `atc_…`.
    Id(String),
    /// The upload's answer; only the id counts.
    Object {
        /// `atc_…`.
        id: String,
    },
}

impl AttachmentRef {
    /// The attachment's id.
    #[must_use]
    pub fn id(&self) -> &str {
        match self {
            Self::Id(id) | Self::Object { id } => id,
        }
    }
}

/// The model and the tool that the user chose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InferenceOptions {
    /// A composer tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// A composer model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A composer tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolChoice {
    /// Its id.
    pub id: String,
}
