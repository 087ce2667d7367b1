//! Chat requests.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::attachment::Attachment;
use super::item::{Page, Thread, ThreadItem};
use super::parts::InputSubmission;

/// A chat request after its `workflow_id` and its access were settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatRequest {
    /// What to do.
    #[serde(flatten)]
    pub operation: ChatOperation,
    /// Free data of the client.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// `POST /api/chat`: a request with its workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatCall {
    /// The workflow's UUID.
    pub workflow_id: String,
    /// What to do.
    #[serde(flatten)]
    pub request: ChatRequest,
}

/// Answer to a request that starts no turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum ChatAnswer {
    /// A thread.
    Thread(Box<Thread>),
    /// A page of threads.
    Threads(Page<Thread>),
    /// A page of items.
    Items(Page<ThreadItem>),
    /// An attachment, with where to send its bytes.
    Attachment(Box<Attachment>),
    /// What was said in a recording.
    Transcript {
        /// The words.
        text: String,
    },
    /// The widget that an action has changed.
    Updated {
        /// Its new state.
        updated_item: Box<ThreadItem>,
    },
    /// It is done.
    Done {},
}

/// What a chat request asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "params")]
pub enum ChatOperation {
    /// A new thread with a first message.
    #[serde(rename = "threads.create")]
    CreateThread {
        /// The message.
        input: UserMessageInput,
    },
    /// Another message in a thread.
    #[serde(rename = "threads.add_user_message")]
    AddUserMessage {
        /// The thread.
        thread_id: String,
        /// The message.
        input: UserMessageInput,
    },
    /// The answer to a message is to be given again.
    #[serde(rename = "threads.retry_after_item")]
    RetryAfterItem {
        /// The thread.
        thread_id: String,
        /// The user's message.
        item_id: String,
    },
    /// A thread with its first items.
    #[serde(rename = "threads.get_by_id")]
    GetThread {
        /// The thread.
        thread_id: String,
    },
    /// The caller's threads.
    #[serde(rename = "threads.list")]
    ListThreads(PageRequest),
    /// The items of a thread.
    #[serde(rename = "items.list")]
    ListItems {
        /// The thread.
        thread_id: String,
        /// Which of them.
        #[serde(flatten)]
        page: PageRequest,
    },
    /// Another title for a thread.
    #[serde(rename = "threads.update")]
    UpdateThread {
        /// The thread.
        thread_id: String,
        /// Its new title.
        title: String,
    },
    /// A thread is to go.
    #[serde(rename = "threads.delete")]
    DeleteThread {
        /// The thread.
        thread_id: String,
    },
    /// What the caller thinks of items.
    #[serde(rename = "items.feedback")]
    ItemFeedback {
        /// The thread.
        thread_id: String,
        /// The items.
        item_ids: Vec<String>,
        /// What they think of them.
        kind: FeedbackKind,
        /// Why, in their words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        comment: Option<String>,
    },
    /// Answers to the questions of an item, which continue its turn.
    #[serde(rename = "threads.add_structured_input")]
    AddStructuredInput {
        /// The thread.
        thread_id: String,
        /// The item with the questions.
        item_id: String,
        /// The answers.
        input: InputSubmission,
    },
    /// What the tool that the thread ends with has returned, which continues its turn.
    #[serde(rename = "threads.add_client_tool_output")]
    AddClientToolOutput {
        /// The thread.
        thread_id: String,
        /// Any JSON.
        result: Value,
    },
    /// An action of a widget or of the page, answered by a turn.
    #[serde(rename = "threads.custom_action")]
    CustomAction(ActionRequest),
    /// An action that only changes its widget.
    #[serde(rename = "threads.sync_custom_action")]
    SyncCustomAction(ActionRequest),
    /// A file that will be uploaded.
    #[serde(rename = "attachments.create")]
    CreateAttachment {
        /// The file's name.
        name: String,
        /// Bytes.
        size: u64,
        /// Its media type.
        mime_type: String,
    },
    /// An uploaded file that no message contains is not needed.
    #[serde(rename = "attachments.delete")]
    DeleteAttachment {
        /// The attachment.
        attachment_id: String,
    },
    /// What is said in a recording.
    #[serde(rename = "input.transcribe")]
    Transcribe {
        /// The recording.
        audio_base64: String,
        /// Its media type, with parameters.
        mime_type: String,
    },
}

impl ChatOperation {
    /// The thread that it is about, where there is one already.
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

/// An action, and where it comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActionRequest {
    /// The thread.
    pub thread_id: String,
    /// The widget, unless the page itself acts.
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
    /// Any JSON, with the values of a form. It comes from a browser unchecked.
    #[serde(default)]
    pub payload: Value,
}

/// A visitor's rating of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FeedbackKind {
    /// Well done.
    Positive,
    /// Not so well.
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

    /// The kind of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Positive, Self::Negative].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Which part of a list to answer.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageRequest {
    /// Most records to answer; 20 when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
    /// Which come first; the newest when nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<Order>,
    /// The id of the record to go on behind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
}

impl PageRequest {
    /// Records of a page where the request does not say.
    pub const DEFAULT: u32 = 20;
    /// Most records of a page; who asks for more gets these.
    pub const MOST: u32 = 100;

    /// How many records to answer.
    #[must_use]
    pub fn records(&self) -> u32 {
        self.limit.filter(|limit| *limit > 0).unwrap_or(Self::DEFAULT).min(Self::MOST)
    }

    /// Which come first.
    #[must_use]
    pub fn direction(&self) -> Order {
        self.order.unwrap_or(Order::Desc)
    }
}

/// Which records come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The oldest.
    Asc,
    /// The newest.
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
    /// Model and tool the user chose.
    #[serde(default)]
    pub inference_options: InferenceOptions,
}

impl UserMessageInput {
    /// One text and nothing else.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![UserMessageContent::InputText { text: text.into() }], ..Self::default() }
    }

    /// The message as a model reads it.
    #[must_use]
    pub fn model_text(&self) -> String {
        self.content.iter().map(UserMessageContent::model_text).collect()
    }
}

/// A part of a user's message.
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
        /// The page's id of it.
        id: String,
        /// Shown as `@text`.
        text: String,
        /// For the page.
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
    /// The part as a model reads it.
    #[must_use]
    pub fn model_text(&self) -> String {
        match self {
            Self::InputText { text } => text.clone(),
            Self::InputTag { text, .. } => format!("@{text}"),
        }
    }
}

/// An uploaded file, named by its id or by the object that the upload answered.
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

/// Model and tool the user chose.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct InferenceOptions {
    /// A tool of the composer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// A model of the composer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A tool of the composer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ToolChoice {
    /// Its id.
    pub id: String,
}
