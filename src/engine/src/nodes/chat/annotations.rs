//! Annotations of a reply.

use serde_json::{Value, json};
use wire::FieldError;
use wire::chat::Source;

use super::sources;
use crate::NodeError;
use crate::execute::ports::SentAnnotation;
use crate::schema::Schema;

/// Maximum annotations per reply.
const MOST: usize = 100;

pub(super) fn schema() -> Value {
    json!({"description": format!(
        "At most {MOST} of `{{source, index?}}`. `source` is `{{type: url, title, url, attribution?}}`, `{{type: file, title, filename}}` or `{{type: entity, title, id, icon?, label?, inline_label?, interactive?, data?}}`, each with `description?`, `timestamp?` (RFC 3339) and `group?`. `index` is a position in this text, in Unicode characters (default: its end). Templates inside, or a template of the list.")})
}

fn source_schema() -> Value {
    let kinds = ["url", "file", "entity"];
    let of = |kind: &&str| {
        let is_kind = json!({"properties": {"type": {"const": kind}}, "required": ["type"]});
        json!({"if": is_kind, "then": sources::schema(kind)})
    };
    json!({"type": "object", "required": ["type"], "properties": {"type": {"enum": kinds}},
           "allOf": kinds.iter().map(of).collect::<Vec<_>>()})
}

/// Checks a filled list. Returns problems with pointers below `base`.
pub(super) fn problems(list: &Value, base: &str) -> Vec<FieldError> {
    let schema = json!({"type": "array", "maxItems": MOST, "items": {
        "type": "object", "required": ["source"], "additionalProperties": false,
        "properties": {"source": source_schema(), "index": {"type": "integer", "minimum": 0}}}});
    Schema::problems_of(&schema, list, base)
}

/// Returns a text's annotations, from a list without problems. An index after the text's end counts as its end.
///
/// # Errors
/// `node.failed` if a source is invalid.
pub(super) fn from_list(list: &Value, text: &str) -> Result<Vec<SentAnnotation>, NodeError> {
    let length = text.chars().count();
    let annotation = |entry: &Value| {
        let source: Source = serde_json::from_value(entry.get("source").cloned().unwrap_or_default())
            .map_err(|error| NodeError::failed(format!("/annotations: {error}")))?;
        let index = entry.get("index").and_then(whole);
        Ok(SentAnnotation { source, from_end: length.saturating_sub(index.unwrap_or(length)) })
    };
    list.as_array().map(Vec::as_slice).unwrap_or_default().iter().map(annotation).collect()
}

/// Parses an integer that a template may have written as `4.0`.
fn whole(number: &Value) -> Option<usize> {
    let number = number.as_u64().or_else(|| format!("{:.0}", number.as_f64()?).parse().ok())?;
    usize::try_from(number).ok()
}
