//! Fields that contain an item: literal parts are checked on save, everything again after filling.

use serde_json::Value;
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::template::has_holes;

/// Checks a filled value. Returns problems with pointers below the given one.
pub(super) type Problems = fn(&Value, &str) -> Vec<FieldError>;

/// Reads a value that contains or is a template. Reports problems that do not depend on template results.
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

/// Refuses a filled value and reports its first problem.
///
/// # Errors
/// `node.failed`, with a pointer.
pub(super) fn refuse(problems: Vec<FieldError>) -> Result<(), NodeError> {
    match problems.into_iter().next() {
        Some(first) => Err(NodeError::failed(format!("{}: {}", first.pointer, first.message))),
        None => Ok(()),
    }
}

/// Whether a problem does not depend on template results. An object's problems concern its member names, which are
/// literal. A summary is an exception: it has two forms.
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
