//! JSON without repeated keys and with limited depth.

use serde_json::Value;
use wire::UniqueJson;

/// Maximum nesting depth.
const MAX_DEPTH: usize = 32;

/// The reason that a text is refused.
pub(super) struct JsonProblem {
    pub(super) line: usize,
    pub(super) detail: String,
}

/// Parses a text.
pub(super) fn parse(text: &str) -> Result<Value, JsonProblem> {
    let UniqueJson(value) = serde_json::from_str(text).map_err(|error| {
        let detail = error.to_string();
        let detail = detail.split(" at line ").next().unwrap_or_default();
        JsonProblem { line: error.line(), detail: format!("The manifest is not valid JSON: {detail}.") }
    })?;
    if depth(&value) > MAX_DEPTH {
        return Err(JsonProblem {
            line: 1,
            detail: format!("The manifest is more than {MAX_DEPTH} levels deep."),
        });
    }
    Ok(value)
}

/// The recursion ends because serde_json has a depth limit of 128.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}
