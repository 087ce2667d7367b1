//! A user's message in a request.

use serde_json::{Map, Value};

use super::{missing, optional_text, text_member, wrong};
use crate::chat::{AttachmentRef, InferenceOptions, ToolChoice, UserMessageContent, UserMessageInput};
use crate::{FieldError, MOST_PROBLEMS};

/// Maximum attachments per message.
const MOST_ATTACHMENTS: usize = 10;
const EXAMPLE_CONTENT: &str = r#"[{"type": "input_text", "text": "Hello"}]"#;

pub(super) fn parse_input(
    input: &Map<String, Value>,
    problems: &mut Vec<FieldError>,
) -> Option<UserMessageInput> {
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
        problems.push(FieldError::new(pointer, "empty", "must contain text, unless there is an attachment"));
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
            let problem =
                FieldError::new(format!("{at}/type"), "unknown", "is not a type of message content");
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
    if list.len() > MOST_ATTACHMENTS {
        let message = format!("must have at most {MOST_ATTACHMENTS} entries; it has {}", list.len());
        problems.push(FieldError::new("/params/input/attachments", "length", message));
        return Vec::new();
    }
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
