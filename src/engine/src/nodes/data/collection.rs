//! Shared parts of the collection nodes.

use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::graph::fields::Fields;
use crate::template::as_text;

/// Maximum name bytes.
const MAX_NAME: usize = 64;

/// JSON Schema of the `collection` field.
pub(crate) fn schema() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9][a-z0-9_-]{0,63}$",
           "description": "Name of the collection in the release of the app; no template."})
}

/// Reads the `collection` field. It is literal, because the collections that a release uses must be known before it
/// is published.
pub(crate) fn field(fields: &mut Fields<'_>, check: &mut Check) -> Option<String> {
    let name = fields.text("collection", &mut check.problems)?;
    if is_name(name) {
        return Some(name.to_owned());
    }
    let message =
        format!("must be the name of a collection, as it is written, with at most {MAX_NAME} characters");
    let problem = FieldError::new(fields.at("collection"), "name", message);
    check.note(problem.suggest("use lowercase letters, digits, - and _, such as \"favourites\""));
    None
}

/// Whether a text can name a collection.
pub(crate) fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= MAX_NAME
        && text.bytes().next().is_some_and(plain)
        && text.bytes().all(|byte| plain(byte) || byte == b'_' || byte == b'-')
}

/// Returns a field's text; empty if the filled value is null.
pub(crate) fn text(input: &Value, name: &str) -> String {
    match input.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(value) => as_text(value).trim().to_owned(),
    }
}

/// Returns a field's integer.
///
/// # Errors
/// The value is not an integer from 1.
pub(crate) fn whole(input: &Value, name: &str) -> Result<i64, NodeError> {
    let number =
        input.get(name).and_then(|value| value.as_i64().or_else(|| as_text(value).trim().parse().ok()));
    number
        .filter(|number| *number >= 1)
        .ok_or_else(|| NodeError::failed(format!("'{name}' must be a whole number from 1")))
}
