//! JSON answers: by a schema, or with the members that an instruction names.

use serde_json::{Map, Number, Value};

use super::instruction::{Action, When};
use super::reading::ParsedRequest;
use super::text::{topics, words};
use super::{classify, extract};

/// Members that receive the skill's text.
const SAID: [&str; 12] = [
    "answer",
    "text",
    "reply",
    "message",
    "summary",
    "response",
    "output",
    "result",
    "content",
    "reasoning",
    "reason",
    "explanation",
];
/// Maximum schema depth.
const DEEP: u32 = 8;

/// Fills schemas from the input.
pub(super) struct Filler<'a> {
    pub(super) reading: &'a ParsedRequest<'a>,
    pub(super) root: &'a Value,
    /// The skill's text.
    pub(super) said: &'a str,
}

impl Filler<'_> {
    /// A value for the whole schema.
    pub(super) fn whole(&self) -> Value {
        self.fill(self.root, "answer", DEEP).unwrap_or(Value::Null)
    }

    /// A value that fits the schema, if the input provides one.
    fn fill(&self, schema: &Value, name: &str, deep: u32) -> Option<Value> {
        let deep = deep.checked_sub(1)?;
        if let Some(value) = schema.get("const") {
            return Some(value.clone());
        }
        if let Some(options) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(options, name);
        }
        if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
            return self.fill(self.root.pointer(target.strip_prefix('#')?)?, name, deep);
        }
        let several = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array());
        if let Some(several) = several {
            return several.iter().find_map(|one| self.fill(one, name, deep));
        }
        if let Some(value) = self.set(name) {
            return Some(value);
        }
        match kind(schema) {
            "object" => Some(self.object(schema, deep)),
            "array" => Some(self.array(schema, name, deep)),
            "string" => self.text(schema, name).map(Value::String),
            "integer" => self.number(name).map(|number| Value::Number(Number::from(whole(number)))),
            "number" => self.number(name).and_then(Number::from_f64).map(Value::Number),
            "boolean" => Some(Value::Bool(words(name).iter().any(|word| self.reading.heard.mentions(word)))),
            _ => None,
        }
    }

    fn object(&self, schema: &Value, deep: u32) -> Value {
        let required = |name: &str| {
            let list = schema.get("required").and_then(Value::as_array);
            list.is_some_and(|list| list.iter().any(|found| found == name))
        };
        let mut object = Map::new();
        for (name, schema) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let found = self.fill(schema, name, deep);
            if let Some(value) = found.or_else(|| required(name).then(|| nothing(schema))) {
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }

    fn array(&self, schema: &Value, name: &str, deep: u32) -> Value {
        let items = schema.get("items").unwrap_or(&Value::Null);
        if let Some(options) = items.get("enum").and_then(Value::as_array) {
            let named = options
                .iter()
                .filter(|option| option.as_str().is_some_and(|o| self.reading.heard.mentions(o)));
            return named.cloned().collect();
        }
        self.fill(items, name.trim_end_matches('s'), deep).into_iter().collect()
    }

    fn one_of(&self, options: &[Value], name: &str) -> Option<Value> {
        let texts: Vec<String> =
            options.iter().filter_map(|option| option.as_str().map(str::to_owned)).collect();
        if let Some(value) = self.set(name).filter(|value| options.contains(value)) {
            return Some(value);
        }
        if texts.is_empty() {
            return options.first().cloned();
        }
        Some(Value::String(classify::label(self.reading, &texts)))
    }

    /// The value that an instruction sets: one whose condition holds takes precedence, then one without a condition,
    /// then one for all other cases.
    fn set(&self, name: &str) -> Option<Value> {
        let find = |rank: u8| {
            self.reading.instructions.iter().find_map(|found| {
                let fits = match (&found.when, rank) {
                    (When::Input { .. }, 0) => found.when.holds(&self.reading.heard),
                    (When::Always, 1) | (When::Otherwise, 2) => true,
                    _ => false,
                };
                match &found.action {
                    Action::Set(field, value) if fits && field.eq_ignore_ascii_case(name) => Some(value),
                    _ => None,
                }
            })
        };
        let value = find(0).or_else(|| find(1)).or_else(|| find(2))?;
        Some(serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.clone())))
    }

    fn text(&self, schema: &Value, name: &str) -> Option<String> {
        let text = extract::field(self.reading, name)
            .or_else(|| SAID.contains(&name.to_lowercase().as_str()).then(|| self.said.to_owned()))?;
        let most =
            schema.get("maxLength").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
        Some(text.chars().take(most.unwrap_or(usize::MAX)).collect())
    }

    fn number(&self, name: &str) -> Option<f64> {
        let found = extract::field(self.reading, name).and_then(|text| text.parse().ok());
        found.or_else(|| {
            // The only number in the input, if the input mentions the field.
            let spoken = topics(name).iter().any(|topic| self.reading.heard.mentions(topic));
            let numbers: Vec<f64> =
                words(&self.reading.input).iter().filter_map(|word| word.parse().ok()).collect();
            match numbers.as_slice() {
                [only] if spoken => Some(*only),
                _ => None,
            }
        })
    }
}

/// An object with the members that an instruction names.
pub(super) fn with_keys(reading: &ParsedRequest<'_>, keys: &[String], said: &str) -> Value {
    let filler = Filler { reading, root: &Value::Null, said };
    if keys.is_empty() {
        return Value::Object(Map::from_iter([("answer".to_owned(), Value::String(said.to_owned()))]));
    }
    let value = |key: &String| {
        let found = filler.set(key).or_else(|| filler.text(&Value::Null, key).map(Value::String));
        found.unwrap_or(Value::Null)
    };
    Value::Object(keys.iter().map(|key| (key.clone(), value(key))).collect())
}

/// The first type other than `null`; an object if only members are given.
fn kind(schema: &Value) -> &str {
    let named = match schema.get("type") {
        Some(Value::String(kind)) => Some(kind.as_str()),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    };
    named.unwrap_or(if schema.get("properties").is_some() { "object" } else { "string" })
}

/// The placeholder for a required member without a value.
fn nothing(schema: &Value) -> Value {
    let nullable = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "null"),
        Some(Value::String(kind)) => kind == "null",
        _ => false,
    };
    let least = schema.get("minimum").cloned();
    match kind(schema) {
        _ if nullable => Value::Null,
        "integer" | "number" => least.unwrap_or_else(|| Value::from(0)),
        "boolean" => Value::Bool(false),
        "array" => Value::Array(Vec::new()),
        "object" => Value::Object(Map::new()),
        _ => Value::String("unknown".to_owned()),
    }
}

/// A number's integer part.
fn whole(number: f64) -> i64 {
    format!("{:.0}", number.trunc()).parse().unwrap_or(0)
}
