//! The field `key`: the name of an item in its thread.

use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::template::{as_text, fill};

/// Characters of the longest key.
const LONGEST: usize = 64;

pub(super) fn schema() -> Value {
    json!({"type": "string", "maxLength": LONGEST, "description":
        "Name of the item, unique in its thread; a template. An item with the key of an earlier one replaces it."})
}

pub(super) fn field(fields: &mut Fields<'_>, check: &mut Check) -> Option<Value> {
    optional_text_field(fields, "key", check)
}

pub(super) fn filled(key: Option<&Value>, scope: &View) -> Result<Option<String>, NodeError> {
    let Some(key) = key else { return Ok(None) };
    let key = as_text(&fill(key, scope)?);
    if key.is_empty() || key.chars().count() > LONGEST {
        return Err(NodeError::failed(format!("/key: must have 1 to {LONGEST} characters")));
    }
    Ok(Some(key))
}
