//! The fields `key`, an item's name in its thread, and `more`.

use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::canonical::sha256;
use crate::check::Check;
use crate::execute::Call;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::template::{as_text, fill, has_holes};

/// Maximum characters in a key.
const LONGEST: usize = 64;

pub(super) fn schema() -> Value {
    schema_with(
        "Name of the item, unique in its thread; a template. An item with the key of an earlier one replaces it.",
    )
}

pub(super) fn schema_with(description: &str) -> Value {
    json!({"type": "string", "maxLength": LONGEST, "description": description})
}

pub(super) fn field(fields: &mut Fields<'_>, check: &mut Check) -> Option<Value> {
    let key = optional_text_field(fields, "key", check)?;
    if key.as_str().is_some_and(|text| !has_holes(text) && !is_valid(text)) {
        check.note(FieldError::new(fields.at("key"), "length", rule()).suggest("\"key\": \"work\""));
    }
    Some(key)
}

/// The database cannot store a NUL, and people read keys in traces.
fn is_valid(key: &str) -> bool {
    !key.is_empty() && key.chars().count() <= LONGEST && !key.chars().any(char::is_control)
}

fn rule() -> String {
    format!("must have 1 to {LONGEST} characters, without control characters")
}

pub(super) fn filled(key: Option<&Value>, scope: &View) -> Result<Option<String>, NodeError> {
    let Some(key) = key else { return Ok(None) };
    let key = as_text(&fill(key, scope)?);
    if is_valid(&key) { Ok(Some(key)) } else { Err(NodeError::failed(format!("/key: {}", rule()))) }
}

/// Derives a key that is shared by all attempts of the visit, including the enclosing nodes' attempts, and unique to
/// the visit.
pub(super) fn derived(call: &Call<'_>) -> String {
    let digest = sha256(&[without_attempts(&call.idempotency_key()).as_bytes()]);
    format!("~{}", hex::encode(digest.get(..16).unwrap_or_default()))
}

pub(super) fn more_schema() -> Value {
    json!({"type": "boolean", "default": false, "description":
        "Whether the item stays open: the next state of its key in this turn changes it while it is shown, and the last one completes it. Requires `key`."})
}

pub(super) fn more(fields: &mut Fields<'_>, check: &mut Check) -> bool {
    fields.boolean("more", &mut check.problems).unwrap_or(false)
}

/// Removes the enclosing nodes' attempt numbers (`~2`) from a visit's name.
fn without_attempts(name: &str) -> String {
    let mut parts = name.split('~');
    let mut left = parts.next().unwrap_or_default().to_owned();
    parts.for_each(|part| left.push_str(part.trim_start_matches(|digit: char| digit.is_ascii_digit())));
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_attempts_do_not_change_the_key() {
        for (name, left) in [
            ("r-a/b-1", "r-a/b-1"),
            ("r-a~2/b-1", "r-a/b-1"),
            ("r-a#3~12/b[4]~2/c-7", "r-a#3/b[4]/c-7"),
            ("r-a[2]~2-1", "r-a[2]-1"),
        ] {
            assert_eq!(without_attempts(name), left);
        }
    }
}
