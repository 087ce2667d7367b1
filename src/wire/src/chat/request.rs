//! Chat requests. Unknown members are ignored at every level; what is missing is reported all at once.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{FieldError, MOST_PROBLEMS, nearest};

/// A chat request after its `workflow_id` and its access were settled.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChatRequest {
    /// What to do.
    #[serde(flatten)]
    pub operation: ChatOperation,
    /// Free data of the client.
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

/// What a chat request asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

/// A user's message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
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
pub struct ToolChoice {
    /// Its id.
    pub id: String,
}

const EXAMPLE_CONTENT: &str = r#"[{"type": "input_text", "text": "Hello"}]"#;
const EXAMPLE_INPUT: &str = r#"{"content": [{"type": "input_text", "text": "Hello"}]}"#;
const EXAMPLE_PARAMS: &str = r#"{"input": {"content": [{"type": "input_text", "text": "Hello"}]}}"#;

const SERVED_TYPES: [&str; 2] = ["threads.create", "threads.add_user_message"];
/// Request types of the protocol that this service does not serve yet.
const LATER_TYPES: [&str; 14] = [
    "threads.add_client_tool_output",
    "threads.add_structured_input",
    "threads.retry_after_item",
    "threads.custom_action",
    "threads.get_by_id",
    "threads.list",
    "items.list",
    "threads.update",
    "threads.delete",
    "items.feedback",
    "attachments.create",
    "attachments.delete",
    "input.transcribe",
    "threads.sync_custom_action",
];

impl ChatRequest {
    /// Reads a request body.
    ///
    /// # Errors
    /// Every problem with its JSON pointer.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Vec<FieldError>> {
        let mut problems = Vec::new();
        let operation = parse_operation(body, &mut problems);
        let metadata = match body.get("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(_) => {
                problems.push(wrong("/metadata", "an object"));
                Map::new()
            }
        };
        match operation {
            Some(operation) if problems.is_empty() => Ok(Self { operation, metadata }),
            _ => Err(problems),
        }
    }
}

fn wrong(pointer: impl Into<String>, expected: &str) -> FieldError {
    FieldError::new(pointer, "type", format!("must be {expected}"))
}

fn missing(pointer: impl Into<String>) -> FieldError {
    FieldError::new(pointer, "required", "is required")
}

fn parse_operation(body: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<ChatOperation> {
    let kind = match body.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        None | Some(Value::Null) => {
            problems.push(missing("/type").suggest("`threads.create` or `threads.add_user_message`"));
            return None;
        }
        Some(_) => {
            problems.push(wrong("/type", "a string"));
            return None;
        }
    };
    if LATER_TYPES.contains(&kind) {
        let problem = FieldError::new("/type", "unsupported", format!("`{kind}` is not served yet"));
        problems.push(problem.suggest("`threads.create` or `threads.add_user_message`"));
        return None;
    }
    if !SERVED_TYPES.contains(&kind) {
        let problem = FieldError::new("/type", "unknown", "is no request type of the chat");
        problems.push(problem.suggest(match nearest(kind, SERVED_TYPES.into_iter().chain(LATER_TYPES)) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`threads.create` or `threads.add_user_message`".to_owned(),
        }));
        return None;
    }
    let params = match body.get("params") {
        Some(Value::Object(params)) => params,
        None | Some(Value::Null) => {
            problems.push(missing("/params").suggest(EXAMPLE_PARAMS));
            return None;
        }
        Some(_) => {
            problems.push(wrong("/params", "an object"));
            return None;
        }
    };
    let thread_id = if kind == "threads.add_user_message" {
        text_member(params, "thread_id", "/params", problems)
    } else {
        None
    };
    let input = match params.get("input") {
        Some(Value::Object(input)) => parse_input(input, problems),
        None | Some(Value::Null) => {
            problems.push(missing("/params/input").suggest(EXAMPLE_INPUT));
            None
        }
        Some(_) => {
            problems.push(wrong("/params/input", "an object").suggest(EXAMPLE_INPUT));
            None
        }
    }?;
    if kind == "threads.create" {
        return Some(ChatOperation::CreateThread { input });
    }
    thread_id.map(|thread_id| ChatOperation::AddUserMessage { thread_id, input })
}

fn parse_input(input: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<UserMessageInput> {
    let before = problems.len();
    let content = parse_content(input, problems);
    let attachments = parse_attachments(input, problems);
    let quoted_text = optional_text(input, "quoted_text", "/params/input", problems);
    let inference_options = parse_options(input, problems);
    if problems.len() > before {
        return None;
    }
    let says_something =
        content.iter().any(|part| !part.model_text().trim().is_empty()) || !attachments.is_empty();
    if !says_something {
        let pointer = "/params/input/content";
        problems.push(FieldError::new(
            pointer,
            "empty",
            "must hold some text, or there must be an attachment",
        ));
        return None;
    }
    Some(UserMessageInput { content, attachments, quoted_text, inference_options })
}

fn parse_content(input: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Vec<UserMessageContent> {
    let parts = match input.get("content") {
        Some(Value::Array(parts)) => parts,
        None | Some(Value::Null) => {
            problems.push(missing("/params/input/content").suggest(EXAMPLE_CONTENT));
            return Vec::new();
        }
        Some(_) => {
            problems.push(wrong("/params/input/content", "an array").suggest(EXAMPLE_CONTENT));
            return Vec::new();
        }
    };
    let mut content = Vec::with_capacity(parts.len());
    for (index, part) in parts.iter().enumerate() {
        if problems.len() > MOST_PROBLEMS {
            break;
        }
        content.extend(parse_part(part, index, problems));
    }
    content
}

fn parse_part(part: &Value, index: usize, problems: &mut Vec<FieldError>) -> Option<UserMessageContent> {
    let at = format!("/params/input/content/{index}");
    let Value::Object(part) = part else {
        problems.push(wrong(at, "an object"));
        return None;
    };
    match part.get("type").and_then(Value::as_str) {
        Some("input_text") => {
            text_member(part, "text", &at, problems).map(|text| UserMessageContent::InputText { text })
        }
        Some("input_tag") => {
            let id = text_member(part, "id", &at, problems);
            let text = text_member(part, "text", &at, problems);
            let group = optional_text(part, "group", &at, problems);
            let data = part.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
            let interactive = part.get("interactive").and_then(Value::as_bool).unwrap_or(false);
            Some(UserMessageContent::InputTag { id: id?, text: text?, data, group, interactive })
        }
        None if matches!(part.get("type"), None | Some(Value::Null)) => {
            problems.push(missing(format!("{at}/type")).suggest("`input_text` or `input_tag`"));
            None
        }
        None => {
            problems.push(wrong(format!("{at}/type"), "a string"));
            None
        }
        Some(_) => {
            let problem = FieldError::new(format!("{at}/type"), "unknown", "is no kind of message content");
            problems.push(problem.suggest("`input_text` or `input_tag`"));
            None
        }
    }
}

fn parse_attachments(input: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Vec<AttachmentRef> {
    let list = match input.get("attachments") {
        None | Some(Value::Null) => return Vec::new(),
        Some(Value::Array(list)) => list,
        Some(_) => {
            problems.push(wrong("/params/input/attachments", "an array"));
            return Vec::new();
        }
    };
    let mut attachments = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        if problems.len() > MOST_PROBLEMS {
            break;
        }
        let id = entry.as_str().or_else(|| entry.get("id").and_then(Value::as_str));
        match id {
            Some(id) => attachments.push(AttachmentRef::Id(id.to_owned())),
            None => {
                let at = format!("/params/input/attachments/{index}");
                problems.push(wrong(at, "an attachment's id, or an object with one"));
            }
        }
    }
    attachments
}

fn parse_options(input: &Map<String, Value>, problems: &mut Vec<FieldError>) -> InferenceOptions {
    let at = "/params/input/inference_options";
    let options = match input.get("inference_options") {
        None | Some(Value::Null) => return InferenceOptions::default(),
        Some(Value::Object(options)) => options,
        Some(_) => {
            problems.push(wrong(at, "an object"));
            return InferenceOptions::default();
        }
    };
    let model = optional_text(options, "model", at, problems);
    let tool_choice = match options.get("tool_choice") {
        None | Some(Value::Null) => None,
        Some(Value::Object(choice)) => {
            text_member(choice, "id", &format!("{at}/tool_choice"), problems).map(|id| ToolChoice { id })
        }
        Some(_) => {
            problems.push(wrong(format!("{at}/tool_choice"), "an object"));
            None
        }
    };
    InferenceOptions { tool_choice, model }
}

fn text_member(
    object: &Map<String, Value>,
    name: &str,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Option<String> {
    if matches!(object.get(name), None | Some(Value::Null)) {
        let problem = missing(format!("{at}/{name}"));
        // Members that nobody knows are ignored; one that was meant for this is better named.
        problems.push(match nearest(name, object.keys().map(String::as_str).take(MOST_PROBLEMS)) {
            Some(near) if near != name => problem.suggest(format!("did you mean `{name}` by `{near}`?")),
            _ => problem,
        });
        return None;
    }
    optional_text(object, name, at, problems)
}

fn optional_text(
    object: &Map<String, Value>,
    name: &str,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Option<String> {
    match object.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            problems.push(wrong(format!("{at}/{name}"), "a string"));
            None
        }
    }
}
