//! Suggests a command that runs a graph with valid inputs.

use std::collections::BTreeSet;

use serde_json::{Value, json};

/// ` --input …` for each required input: those in the schema, or, without a schema, those in expressions.
pub(super) fn inputs(graph: &Value) -> String {
    let schema = graph.get("inputs").filter(|schema| schema.is_object());
    let pairs: Vec<(String, Value)> = match schema {
        Some(schema) => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let value = |name: &str| {
                let property = schema.get("properties").and_then(|all| all.get(name));
                property.map_or_else(|| text(name), |property| fitting(name, property))
            };
            required.filter_map(Value::as_str).map(|name| (name.to_owned(), value(name))).collect()
        }
        None => named(&graph.to_string()).into_iter().map(|name| (name.to_owned(), text(name))).collect(),
    };
    pairs.iter().map(|(name, value)| format!(" --input {}", argument(name, value))).collect()
}

/// A value that matches an input's schema, for simple schemas.
fn fitting(name: &str, schema: &Value) -> Value {
    let given = |key| schema.get(key).cloned();
    let listed = |key| schema.get(key).and_then(|values| values.get(0)).cloned();
    let example = listed("examples").or_else(|| given("default")).or_else(|| given("const"));
    if let Some(value) = example.or_else(|| listed("enum")) {
        return value;
    }
    let kind = schema.get("type");
    match kind.and_then(|kind| kind.as_str().or_else(|| kind.get(0)?.as_str())) {
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(json!(1)),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => text(name),
    }
}

fn text(name: &str) -> Value {
    if name == "message" { json!("Hello!") } else { json!(format!("some {}", name.replace('_', " "))) }
}

/// The inputs that expressions refer to.
fn named(graph: &str) -> BTreeSet<&str> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names = graph.match_indices("inputs.").filter_map(|(at, found)| {
        let (before, after) = (graph.get(..at)?, graph.get(at.checked_add(found.len())?..)?);
        let name = after.get(..after.find(|c| !is_word(c)).unwrap_or(after.len()))?;
        (!before.ends_with(|c| is_word(c) || c == '.') && !name.is_empty()).then_some(name)
    });
    names.collect()
}

/// `name=value`, quoted for a shell.
fn argument(name: &str, value: &Value) -> String {
    match value {
        Value::String(text) if !text.contains(['"', '$', '`', '\\', '!']) || text == "Hello!" => {
            format!("{name}=\"{text}\"")
        }
        Value::String(text) => format!("'{}'", format!("{name}={text}").replace('\'', r"'\''")),
        Value::Array(_) | Value::Object(_) => {
            format!("'{}'", format!("{name}={value}").replace('\'', r"'\''"))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => format!("{name}={value}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_contains_the_required_inputs() {
        let schema = json!({"inputs": {"required": ["message", "n", "kind", "list", "why", "at"], "properties": {
            "message": {"type": "string"}, "n": {"type": "integer", "minimum": 3}, "kind": {"enum": ["a b", "c"]},
            "list": {"type": ["array", "null"]}, "why": {"default": "it's $5"}, "other": {"type": "string"}}}});
        assert_eq!(
            inputs(&schema),
            r#" --input message="Hello!" --input n=3 --input kind="a b" --input 'list=[]' --input 'why=it'\''s $5' --input at="some at""#
        );
        let free = json!({"nodes": [{"text": "{{ inputs.message }} {{ inputs.order_id|upper }} {{ my_inputs.no }}"}]});
        assert_eq!(inputs(&free), r#" --input message="Hello!" --input order_id="some order id""#);
        assert_eq!(inputs(&json!({"nodes": []})), "");
    }
}
