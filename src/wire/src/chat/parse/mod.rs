//! Parses a chat request. Unknown members are ignored at every level; all missing ones are reported together.

mod message;
mod params;
mod submission;

pub(super) use submission::submission_at;

use serde_json::{Map, Value};

use super::{ChatOperation, ChatRequest};
use crate::{FieldError, MOST_PROBLEMS, nearest};

/// The protocol's request types.
const REQUEST_TYPES: [&str; 16] = [
    "threads.create",
    "threads.add_user_message",
    "threads.add_client_tool_output",
    "threads.add_structured_input",
    "threads.retry_after_item",
    "threads.get_by_id",
    "threads.list",
    "items.list",
    "threads.update",
    "threads.delete",
    "items.feedback",
    "threads.custom_action",
    "threads.sync_custom_action",
    "attachments.create",
    "attachments.delete",
    "input.transcribe",
];
/// Suggestion for a missing or unknown type.
const USUAL_TYPES: &str = "`threads.create` or `threads.add_user_message`";

impl ChatRequest {
    /// Parses a request body.
    ///
    /// # Errors
    /// Every problem with its JSON pointer.
    pub fn parse(body: &Map<String, Value>) -> Result<Self, Vec<FieldError>> {
        let mut problems = Vec::new();
        let operation = operation(body, &mut problems);
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

fn operation(body: &Map<String, Value>, problems: &mut Vec<FieldError>) -> Option<ChatOperation> {
    let kind = match body.get("type") {
        Some(Value::String(kind)) => kind.as_str(),
        None | Some(Value::Null) => {
            problems.push(missing("/type").suggest(USUAL_TYPES));
            return None;
        }
        Some(_) => {
            problems.push(wrong("/type", "a string"));
            return None;
        }
    };
    if !REQUEST_TYPES.contains(&kind) {
        let problem = FieldError::new("/type", "unknown", "is not a chat request type");
        problems.push(problem.suggest(match nearest(kind, REQUEST_TYPES) {
            Some(near) => format!("did you mean `{near}`?"),
            None => USUAL_TYPES.to_owned(),
        }));
        return None;
    }
    let params = match body.get("params") {
        Some(Value::Object(params)) => params,
        None | Some(Value::Null) => {
            problems.push(missing("/params").suggest(params::example(kind)));
            return None;
        }
        Some(_) => {
            problems.push(wrong("/params", "an object"));
            return None;
        }
    };
    params::operation(kind, params, problems)
}

fn wrong(pointer: impl Into<String>, expected: &str) -> FieldError {
    FieldError::new(pointer, "type", format!("must be {expected}"))
}

fn missing(pointer: impl Into<String>) -> FieldError {
    FieldError::new(pointer, "required", "is required")
}

fn text_member(
    object: &Map<String, Value>,
    name: &str,
    at: &str,
    problems: &mut Vec<FieldError>,
) -> Option<String> {
    if matches!(object.get(name), None | Some(Value::Null)) {
        let problem = missing(format!("{at}/{name}"));
        // Unknown members are ignored, so a similar name in the request is suggested.
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
