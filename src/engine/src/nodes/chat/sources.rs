//! Sources named by annotations and tasks.

use serde_json::{Value, json};

/// RFC 3339.
const TIMESTAMP: &str = r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$";

use super::icons;

/// JSON Schema of a `url`, `file` or `entity` source.
pub(super) fn schema(kind: &str) -> Value {
    let text = json!({"type": "string"});
    let (place, own) = match kind {
        "url" => {
            ("url", json!({"url": {"type": "string", "pattern": "^https?://[^/]"}, "attribution": text}))
        }
        "file" => ("filename", json!({"filename": text})),
        _ => (
            "id",
            json!({"id": text, "icon": icons::schema(), "label": text, "inline_label": text,
                           "interactive": {"type": "boolean"}, "data": {"type": "object"}}),
        ),
    };
    let mut properties = json!({"type": {"const": kind}, "title": text, "description": text, "group": text,
                                "timestamp": {"type": "string", "pattern": TIMESTAMP}});
    if let (Value::Object(all), Value::Object(own)) = (&mut properties, own) {
        all.extend(own);
    }
    json!({"type": "object", "required": ["type", "title", place], "properties": properties,
           "additionalProperties": false})
}
