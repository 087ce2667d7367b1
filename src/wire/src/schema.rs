//! Additions to the derived schemas.

use schemars::Schema;
use serde_json::{Value, json};

/// Adds the `type` member to a tagged struct.
pub(crate) fn tagged(tag: &'static str) -> impl Fn(&mut Schema) {
    move |schema| {
        let members = schema.ensure_object();
        let properties = members.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties.insert("type".into(), json!({"type": "string", "const": tag}));
        }
        if let Some(required) = members.entry("required").or_insert_with(|| json!([])).as_array_mut() {
            required.insert(0, Value::from("type"));
        }
    }
}
