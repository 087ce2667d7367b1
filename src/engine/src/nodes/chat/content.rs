//! Fields that contain an item: checked when the graph is saved as far as they are literal, and again when they are filled.

use serde_json::Value;
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::template::has_holes;

/// Returns problems of a filled value, with pointers below the given one.
pub(super) type Problems = fn(&Value, &str) -> Vec<FieldError>;

/// A value with templates inside, or a template of one. Reports the problems that do not depend on the results of its templates.
pub(super) fn read(
    value: &Value,
    at: &str,
    problems: Problems,
    help: &str,
    check: &mut Check,
) -> Option<Value> {
    if !check.templates(value, at) {
        return None;
    }
    let found = if value.is_null() { Vec::new() } else { problems(value, at) };
    for problem in found.into_iter().filter(|problem| is_certain(value, problem, at)) {
        check.note_at_saving(problem.suggest(help));
    }
    Some(value.clone())
}

/// Reports that only an item with a key can be removed.
pub(super) fn require_key(at: String, check: &mut Check) {
    let problem = FieldError::new(at, "required", "is required to change or remove an item");
    check.note(problem.suggest("\"key\": \"work\""));
}

/// Refuses a filled value with the first problem.
///
/// # Errors
/// `node.failed`, with a pointer.
pub(super) fn refuse(problems: Vec<FieldError>) -> Result<(), NodeError> {
    match problems.into_iter().next() {
        Some(first) => Err(NodeError::failed(format!("{}: {}", first.pointer, first.message))),
        None => Ok(()),
    }
}

/// Whether a problem of a value does not depend on what its templates return. A problem of an object concerns the names of its members, which are literal. A summary is an exception: it has two forms.
fn is_certain(value: &Value, problem: &FieldError, base: &str) -> bool {
    let pointer = problem.pointer.strip_prefix(base).unwrap_or_default();
    match value.pointer(pointer) {
        Some(Value::Object(_)) if !pointer.ends_with("/summary") => true,
        Some(value) => is_literal(value),
        None => false,
    }
}

fn is_literal(value: &Value) -> bool {
    match value {
        Value::String(text) => !has_holes(text),
        Value::Array(items) => items.iter().all(is_literal),
        Value::Object(members) => members.values().all(is_literal),
        _ => true,
    }
}
