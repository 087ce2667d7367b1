//! Each request type's `params`.

use serde_json::{Map, Value};

use super::message::parse_input;
use super::{missing, optional_text, submission, text_member, wrong};
use crate::FieldError;
use crate::chat::{
    Action, ActionRequest, ChatOperation, FeedbackKind, LONGEST_TITLE, Order, PageRequest, UserMessageInput,
    title_of,
};

const EXAMPLE_INPUT: &str = r#"{"content": [{"type": "input_text", "text": "Hello"}]}"#;
pub(super) const EXAMPLE_ANSWERS: &str = r#"{"answers": {"ok": {"values": ["yes"]}}}"#;
const AT: &str = "/params";
/// Maximum characters for an action's type.
const LONGEST_ACTION: usize = 200;
/// Maximum characters for a feedback comment.
const LONGEST_COMMENT: usize = 2_000;
/// Maximum items per feedback.
const MOST_ITEMS: usize = 100;

/// An example for missing `params`.
pub(super) fn example(kind: &str) -> String {
    match kind {
        "threads.list" => "{}".to_owned(),
        "threads.create" => format!(r#"{{"input": {EXAMPLE_INPUT}}}"#),
        "threads.add_user_message" => format!(r#"{{"thread_id": "thr_…", "input": {EXAMPLE_INPUT}}}"#),
        "threads.retry_after_item" => r#"{"thread_id": "thr_…", "item_id": "msg_…"}"#.to_owned(),
        "threads.add_structured_input" => {
            format!(r#"{{"thread_id": "thr_…", "item_id": "msg_…", "input": {EXAMPLE_ANSWERS}}}"#)
        }
        "threads.add_client_tool_output" => r#"{"thread_id": "thr_…", "result": {}}"#.to_owned(),
        "threads.update" => r#"{"thread_id": "thr_…", "title": "Orders"}"#.to_owned(),
        "items.feedback" => r#"{"thread_id": "thr_…", "item_ids": ["msg_…"], "kind": "positive"}"#.to_owned(),
        "threads.custom_action" | "threads.sync_custom_action" => {
            r#"{"thread_id": "thr_…", "item_id": "msg_…", "action": {"type": "order.cancel"}}"#.to_owned()
        }
        "attachments.create" => {
            r#"{"name": "plan.pdf", "size": 20480, "mime_type": "application/pdf"}"#.to_owned()
        }
        "attachments.delete" => r#"{"attachment_id": "atc_…"}"#.to_owned(),
        "input.transcribe" => r#"{"audio_base64": "…", "mime_type": "audio/webm"}"#.to_owned(),
        _ => r#"{"thread_id": "thr_…"}"#.to_owned(),
    }
}

/// Parses a known request type's `params`.
pub(super) fn operation(
    kind: &str,
    params: &Map<String, Value>,
    problems: &mut Vec<FieldError>,
) -> Option<ChatOperation> {
    Some(match kind {
        "threads.add_user_message" => {
            let (thread_id, input) = (thread_id(params, problems), input(params, problems));
            ChatOperation::AddUserMessage { thread_id: thread_id?, input: input? }
        }
        "threads.retry_after_item" => {
            let thread_id = thread_id(params, problems);
            let item_id = text_member(params, "item_id", AT, problems);
            ChatOperation::RetryAfterItem { thread_id: thread_id?, item_id: item_id? }
        }
        "threads.add_structured_input" => {
            let thread_id = thread_id(params, problems);
            let item_id = text_member(params, "item_id", AT, problems);
            let input = submission::parse(params, problems);
            ChatOperation::AddStructuredInput { thread_id: thread_id?, item_id: item_id?, input: input? }
        }
        "threads.add_client_tool_output" => {
            let (thread_id, result) = (thread_id(params, problems), tool_result(params, problems));
            ChatOperation::AddClientToolOutput { thread_id: thread_id?, result: result? }
        }
        "threads.get_by_id" => ChatOperation::GetThread { thread_id: thread_id(params, problems)? },
        "items.list" => {
            let (thread_id, page) = (thread_id(params, problems), page(params, problems));
            ChatOperation::ListItems { thread_id: thread_id?, page: page? }
        }
        "threads.update" => {
            let (thread_id, title) = (thread_id(params, problems), title(params, problems));
            ChatOperation::UpdateThread { thread_id: thread_id?, title: title? }
        }
        "threads.delete" => ChatOperation::DeleteThread { thread_id: thread_id(params, problems)? },
        "items.feedback" => feedback(params, problems)?,
        "threads.custom_action" => ChatOperation::CustomAction(action_request(params, problems)?),
        "threads.sync_custom_action" => ChatOperation::SyncCustomAction(action_request(params, problems)?),
        "attachments.create" => {
            let (name, size) = (text_member(params, "name", AT, problems), size(params, problems));
            let mime_type = text_member(params, "mime_type", AT, problems);
            ChatOperation::CreateAttachment { name: name?, size: size?, mime_type: mime_type? }
        }
        "attachments.delete" => {
            let attachment_id = text_member(params, "attachment_id", AT, problems)?;
            ChatOperation::DeleteAttachment { attachment_id }
        }
        "input.transcribe" => {
            let audio_base64 = text_member(params, "audio_base64", AT, problems);
            let mime_type = text_member(params, "mime_type", AT, problems);
            ChatOperation::Transcribe { audio_base64: audio_base64?, mime_type: mime_type? }
        }
        "threads.list" => ChatOperation::ListThreads(page(params, problems)?),
        _ => ChatOperation::CreateThread { input: input(params, problems)? },
    })
}

fn thread_id(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<String> {
    text_member(params, "thread_id", AT, problems)
}

fn input(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<UserMessageInput> {
    match params.get("input") {
        Some(Value::Object(input)) => parse_input(input, problems),
        None | Some(Value::Null) => {
            problems.push(missing("/params/input").suggest(EXAMPLE_INPUT));
            None
        }
        Some(_) => {
            problems.push(wrong("/params/input", "an object").suggest(EXAMPLE_INPUT));
            None
        }
    }
}

fn tool_result(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<Value> {
    let result = params.get("result").cloned();
    if result.is_none() {
        problems.push(missing("/params/result").suggest(r#"{"city": "Paris"}, or null"#));
    }
    result
}

fn title(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<String> {
    let title = title_of(&text_member(params, "title", AT, problems)?);
    let length = title.chars().count();
    if (1..=LONGEST_TITLE).contains(&length) {
        return Some(title);
    }
    let message = format!("must have 1 to {LONGEST_TITLE} characters; it has {length}");
    problems.push(FieldError::new("/params/title", "length", message));
    None
}

fn item_ids(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<Vec<String>> {
    let before = problems.len();
    let at = "/params/item_ids";
    let list = match params.get("item_ids") {
        Some(Value::Array(list)) => list,
        None | Some(Value::Null) => {
            problems.push(missing(at).suggest(r#"["msg_…"]"#));
            return None;
        }
        Some(_) => {
            problems.push(wrong(at, "an array").suggest(r#"["msg_…"]"#));
            return None;
        }
    };
    if list.is_empty() || list.len() > MOST_ITEMS {
        let message = format!("must have 1 to {MOST_ITEMS} entries; it has {}", list.len());
        problems.push(FieldError::new(at, "length", message));
        return None;
    }
    let mut ids = Vec::with_capacity(list.len());
    for (index, entry) in list.iter().enumerate() {
        match entry.as_str() {
            Some(id) => ids.push(id.to_owned()),
            None => problems.push(wrong(format!("{at}/{index}"), "a string")),
        }
    }
    (problems.len() == before).then_some(ids)
}

fn action_request(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<ActionRequest> {
    let thread_id = thread_id(params, problems);
    let item_id = optional_text(params, "item_id", AT, problems);
    let action = action(params, problems);
    Some(ActionRequest { thread_id: thread_id?, item_id, action: action? })
}

fn action(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<Action> {
    let at = "/params/action";
    let action = match params.get("action") {
        Some(Value::Object(action)) => action,
        None | Some(Value::Null) => {
            problems.push(missing(at).suggest(r#"{"type": "order.cancel", "payload": {}}"#));
            return None;
        }
        Some(_) => {
            problems.push(wrong(at, "an object"));
            return None;
        }
    };
    let kind = text_member(action, "type", at, problems)?;
    let length = kind.chars().count();
    if !(1..=LONGEST_ACTION).contains(&length) {
        let message = format!("must have 1 to {LONGEST_ACTION} characters; it has {length}");
        problems.push(FieldError::new(format!("{at}/type"), "length", message));
        return None;
    }
    Some(Action { kind, payload: action.get("payload").cloned().unwrap_or_default() })
}

fn size(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<u64> {
    let at = "/params/size";
    let size = match params.get("size") {
        None | Some(Value::Null) => {
            problems.push(missing(at));
            return None;
        }
        Some(size) => size.as_u64(),
    };
    match size {
        None => problems.push(wrong(at, "a whole number of bytes")),
        Some(0) => problems.push(FieldError::new(at, "range", "must be at least 1")),
        Some(_) => return size,
    }
    None
}

fn feedback(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<ChatOperation> {
    let thread_id = thread_id(params, problems);
    let (item_ids, kind) = (item_ids(params, problems), kind_of_feedback(params, problems));
    let comment = comment(params, problems);
    Some(ChatOperation::ItemFeedback { thread_id: thread_id?, item_ids: item_ids?, kind: kind?, comment })
}

fn kind_of_feedback(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<FeedbackKind> {
    match text_member(params, "kind", AT, problems)?.as_str() {
        "positive" => Some(FeedbackKind::Positive),
        "negative" => Some(FeedbackKind::Negative),
        _ => {
            let problem = FieldError::new("/params/kind", "unknown", "is not a kind of feedback");
            problems.push(problem.suggest("`positive` or `negative`"));
            None
        }
    }
}

/// A feedback's trimmed comment; `None` if empty.
fn comment(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<String> {
    let comment = optional_text(params, "comment", AT, problems)?;
    let comment = comment.trim();
    let length = comment.chars().count();
    if length > LONGEST_COMMENT {
        let message = format!("must have at most {LONGEST_COMMENT} characters; it has {length}");
        problems.push(FieldError::new("/params/comment", "length", message));
    }
    if comment.contains('\0') {
        problems.push(FieldError::new("/params/comment", "format", "must not contain the character NUL"));
    }
    (!comment.is_empty()).then(|| comment.to_owned())
}

fn page(params: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<PageRequest> {
    let before = problems.len();
    let limit = match params.get("limit") {
        None | Some(Value::Null) => None,
        Some(Value::Number(number)) if number.as_u64().is_some() => {
            number.as_u64().map(|limit| u32::try_from(limit).unwrap_or(u32::MAX))
        }
        Some(Value::Number(number)) if number.is_i64() => {
            problems.push(FieldError::new("/params/limit", "range", "must not be negative"));
            None
        }
        Some(_) => {
            problems.push(wrong("/params/limit", "a whole number"));
            None
        }
    };
    let order = match optional_text(params, "order", AT, problems).as_deref() {
        None => None,
        Some("asc") => Some(Order::Asc),
        Some("desc") => Some(Order::Desc),
        Some(_) => {
            let problem = FieldError::new("/params/order", "unknown", "is not a valid order");
            problems.push(problem.suggest("`asc` or `desc`"));
            None
        }
    };
    let after = optional_text(params, "after", AT, problems).filter(|after| !after.is_empty());
    (problems.len() == before).then_some(PageRequest { limit, order, after })
}
