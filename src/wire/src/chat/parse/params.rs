//! The `params` of each kind of request.

use serde_json::{Map, Value};

use super::message::parse_input;
use super::{missing, optional_text, text_member, wrong};
use crate::FieldError;
use crate::chat::{ChatOperation, Order, PageRequest, UserMessageInput};

const EXAMPLE_INPUT: &str = r#"{"content": [{"type": "input_text", "text": "Hello"}]}"#;
const AT: &str = "/params";

/// What to send where `params` is missing.
pub(super) fn example(kind: &str) -> String {
    match kind {
        "threads.list" => "{}".to_owned(),
        "threads.create" => format!(r#"{{"input": {EXAMPLE_INPUT}}}"#),
        "threads.add_user_message" => format!(r#"{{"thread_id": "thr_…", "input": {EXAMPLE_INPUT}}}"#),
        _ => r#"{"thread_id": "thr_…"}"#.to_owned(),
    }
}

/// Reads the `params` of a request type that is served.
pub(super) fn of(
    kind: &str,
    params: &Map<String, Value>,
    problems: &mut Vec<FieldError>,
) -> Option<ChatOperation> {
    Some(match kind {
        "threads.add_user_message" => {
            let (thread_id, input) = (thread_id(params, problems), input(params, problems));
            ChatOperation::AddUserMessage { thread_id: thread_id?, input: input? }
        }
        "threads.get_by_id" => ChatOperation::GetThread { thread_id: thread_id(params, problems)? },
        "items.list" => {
            let (thread_id, page) = (thread_id(params, problems), page(params, problems));
            ChatOperation::ListItems { thread_id: thread_id?, page: page? }
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
            let problem = FieldError::new("/params/order", "unknown", "is no order");
            problems.push(problem.suggest("`asc` or `desc`"));
            None
        }
    };
    let after = optional_text(params, "after", AT, problems).filter(|after| !after.is_empty());
    (problems.len() == before).then_some(PageRequest { limit, order, after })
}
