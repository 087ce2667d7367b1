//! What the derived schemas lack.

use schemars::Schema;
use serde_json::{Value, json};

/// Adds the member `type` of a struct with a tag.
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
