//! A node's fields as table rows, read from its JSON Schema, for the command line and the documentation.

use serde_json::Value;

use super::NodeType;
use crate::graph::common;

/// A node's field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRow {
    /// Its name.
    pub name: String,
    /// Whether a node must have it.
    pub needed: Needed,
    /// Its type and bounds, in words.
    pub kind: String,
    /// Its default value, as JSON.
    pub default: Option<String>,
    /// Its purpose; Markdown.
    pub description: String,
}

/// Whether a node must have a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Always.
    Yes,
    /// One of several fields is required.
    OneOf,
    /// Never.
    No,
}

impl NodeType {
    /// Its own fields: required ones first, then the others by name.
    #[must_use]
    pub fn fields(&self) -> Vec<FieldRow> {
        rows(&(self.schema)())
    }

    /// Its example in the usual order: name, type, then its fields in order.
    #[must_use]
    pub fn example_text(&self) -> String {
        let example = (self.example)();
        let Some(members) = example.as_object() else { return example.to_string() };
        let mut names = vec!["name".to_owned(), "type".to_owned()];
        names.extend(self.fields().into_iter().map(|row| row.name));
        let place = |name: &String| names.iter().position(|known| known == name).unwrap_or(usize::MAX);
        let mut members: Vec<(&String, &Value)> = members.iter().collect();
        members.sort_by_key(|(name, _)| place(name));
        let lines: Vec<String> = members
            .into_iter()
            .map(|(name, value)| {
                let value = serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', "\n  ");
                format!("  {}: {value}", Value::from(name.as_str()))
            })
            .collect();
        format!("{{\n{}\n}}", lines.join(",\n"))
    }
}

/// The fields that every node may have, without `name` and `type`.
#[must_use]
pub fn common_fields() -> Vec<FieldRow> {
    rows(&serde_json::json!({"properties": common::schema()}))
}

fn rows(schema: &Value) -> Vec<FieldRow> {
    let required = names(schema.get("required"));
    let either = ["anyOf", "oneOf"].into_iter().filter_map(|word| schema.get(word)?.as_array()).flatten();
    let either: Vec<&str> = either.flat_map(|choice| names(choice.get("required"))).collect();
    let needed = |name: &str| match () {
        () if required.contains(&name) => Needed::Yes,
        () if either.contains(&name) => Needed::OneOf,
        () => Needed::No,
    };
    let properties = schema.get("properties").and_then(Value::as_object);
    let mut rows: Vec<FieldRow> = properties
        .into_iter()
        .flatten()
        .map(|(name, field)| FieldRow {
            name: name.clone(),
            needed: needed(name),
            kind: kind(field),
            default: field.get("default").map(Value::to_string),
            description: text(field, "description").unwrap_or_default().to_owned(),
        })
        .collect();
    rows.sort_by(|one, other| one.name.cmp(&other.name));
    rows.sort_by_key(|row| match row.needed {
        Needed::Yes => required.iter().position(|name| *name == row.name).unwrap_or(0),
        Needed::OneOf => required.len(),
        Needed::No => usize::MAX,
    });
    rows
}

fn names(list: Option<&Value>) -> Vec<&str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn text<'a>(field: &'a Value, name: &str) -> Option<&'a str> {
    field.get(name).and_then(Value::as_str)
}

/// Describes a schema's values in words.
fn kind(field: &Value) -> String {
    if let Some(words) = field.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" or ");
    }
    if let Some(choices) = field.get("oneOf").and_then(Value::as_array) {
        return choices.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    let types = match field.get("type") {
        Some(Value::String(one)) => vec![one.as_str()],
        several => names(several),
    };
    let words: Vec<String> = types.into_iter().map(|name| word(name, field)).collect();
    if words.is_empty() { "anything".to_owned() } else { words.join(" or ") }
}

fn word(name: &str, field: &Value) -> String {
    match name {
        "integer" => format!("whole number{}", bounds(field)),
        "number" => format!("number{}", bounds(field)),
        "boolean" => "true or false".to_owned(),
        "array" => "list".to_owned(),
        "object" => match field.get("properties").and_then(Value::as_object) {
            Some(members) => {
                let names: Vec<&str> = members.keys().map(String::as_str).collect();
                format!("object with {}", names.join(", "))
            }
            None => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}

fn bounds(field: &Value) -> String {
    let at = |name: &str| {
        field.get(name).map(Value::to_string).map(|number| number.trim_end_matches(".0").to_owned())
    };
    match (at("minimum"), at("exclusiveMinimum"), at("maximum")) {
        (Some(least), _, Some(most)) => format!(" from {least} to {most}"),
        (Some(least), _, None) => format!(" from {least}"),
        (None, Some(above), Some(most)) => format!(" above {above}, at most {most}"),
        (None, Some(above), None) => format!(" above {above}"),
        (None, None, Some(most)) => format!(" up to {most}"),
        (None, None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::{CATALOGUE, find};

    fn lines(rows: Vec<FieldRow>) -> Vec<String> {
        let line = |row: FieldRow| {
            format!("{} {:?} {} {}", row.name, row.needed, row.kind, row.default.unwrap_or_default())
        };
        rows.into_iter().map(|row| line(row).trim_end().to_owned()).collect()
    }

    #[test]
    fn fields_are_described_in_words() {
        assert_eq!(
            lines(find("llm").unwrap().fields()),
            [
                "model Yes string",
                "messages OneOf string or list",
                "user OneOf string",
                "api_key No string",
                "attachments No \"auto\" or \"none\" \"auto\"",
                "base_url No string",
                "max_tokens No whole number from 1 to 1000000",
                "repair No whole number from 0 to 3 1",
                "response_schema No object",
                "seed No whole number from 0",
                "stream No true or false false",
                "system No string",
                "temperature No number from 0 to 2",
            ]
        );
        assert_eq!(
            lines(find("notice").unwrap().fields())[1],
            r#"level No "info" or "warning" or "danger" "info""#
        );
        let common = lines(common_fields());
        assert!(
            common.contains(&r#"on_error No "fail" or "continue" or object with to "fail""#.to_owned()),
            "{common:?}"
        );
        assert!(common.contains(&"timeout_seconds No number from 0.001 to 86400".to_owned()), "{common:?}");
    }

    #[test]
    fn every_field_of_every_type_has_a_kind() {
        for kind in CATALOGUE {
            let schema = (kind.schema)();
            let fields = kind.fields();
            assert_eq!(fields.len(), schema["properties"].as_object().unwrap().len(), "{}", kind.name);
            assert!(fields.iter().all(|row| !row.kind.is_empty()), "{}", kind.name);
            let alone = matches!(kind.name, "wait_for_input" | "thread" | "reply");
            assert_eq!(fields.iter().any(|row| row.needed != Needed::No), !alone, "{}", kind.name);
            let text = kind.example_text();
            assert!(text.starts_with("{\n  \"name\": "), "{text}");
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), (kind.example)());
        }
    }
}
