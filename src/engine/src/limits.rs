//! Size and depth limits for values that go into the journal.

use serde_json::Value;
use wire::ErrorCode;

use crate::NodeError;
use crate::canonical::text;

/// Maximum value size in JSON bytes.
pub(crate) const LARGEST: usize = 8 << 20;
/// Maximum size, in JSON bytes, of data that a node passes to pages or later turns.
const LARGEST_DATA: usize = 64 << 10;
/// Maximum nesting of lists and objects: deeper values could not be read back from the journal.
pub(crate) const DEEPEST: usize = 100;

/// Serializes a value.
///
/// # Errors
/// `node.result_too_large` if the value is too large or too deep.
pub(crate) fn json(value: &Value) -> Result<String, NodeError> {
    if depth(value) > DEEPEST {
        return Err(too_deep());
    }
    let text = text(value);
    if text.len() > LARGEST { Err(too_large(&format!("{} bytes", text.len()))) } else { Ok(text) }
}

pub(crate) fn too_large(what: &str) -> NodeError {
    let code = ErrorCode::NodeResultTooLarge;
    NodeError::new(code, format!("{what}: {}", code.message()))
}

pub(crate) fn too_deep() -> NodeError {
    let message = format!("more than {DEEPEST} nested lists and objects");
    NodeError::new(ErrorCode::NodeResultTooLarge, message)
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or_default(),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Approximate JSON size in bytes.
pub(crate) fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(members) => members.iter().map(|(name, member)| name.len() + size(member)).sum(),
        _ => 8,
    }
}

/// Whether the value's texts exceed `bytes` in total.
pub(crate) fn is_longer(value: &Value, bytes: usize) -> bool {
    fn left(value: &Value, bytes: usize) -> Option<usize> {
        match value {
            Value::String(text) => bytes.checked_sub(text.len()),
            Value::Array(items) => {
                items.iter().try_fold(bytes, |bytes, item| left(item, bytes.checked_sub(1)?))
            }
            Value::Object(members) => members
                .iter()
                .try_fold(bytes, |bytes, (name, member)| left(member, bytes.checked_sub(name.len())?)),
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes.checked_sub(8),
        }
    }
    left(value, bytes).is_none()
}

/// Refuses data that is too large.
pub(crate) fn check_data(what: &str, data: &Value) -> Result<(), NodeError> {
    let bytes = text(data).len();
    if bytes > LARGEST_DATA {
        return Err(too_large(&format!("{what} of {bytes} bytes, more than {LARGEST_DATA}")));
    }
    Ok(())
}
