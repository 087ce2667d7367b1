//! The schemas for requests and responses: a type that is read and written differently has two.

use std::collections::BTreeSet;

use anyhow::Result;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};
use wire::operation::Shape;

/// The prefix for references from responses.
const PLACE: &str = "#/components/schemas/";
/// The prefix for references from requests, until [`Schemas::place`] knows which types are the same for both.
const REQUESTS: &str = "#/components/requests/";
/// The name suffix of a type that is read and written differently.
const READ: &str = "Request";

/// Collects the body schemas.
pub(super) struct Schemas {
    requests: SchemaGenerator,
    answers: SchemaGenerator,
}

impl Schemas {
    pub(super) fn new() -> Self {
        let settings = |place: &'static str| {
            let mut settings = SchemaSettings::draft2020_12();
            settings.meta_schema = None;
            settings.definitions_path = place.into();
            settings
        };
        Self {
            requests: settings(REQUESTS).for_deserialize().into_generator(),
            answers: settings(PLACE).for_serialize().into_generator(),
        }
    }

    pub(super) fn of_request(&mut self, shape: Shape) -> Value {
        (shape.schema)(&mut self.requests).to_value()
    }

    pub(super) fn of_answer(&mut self, shape: Shape) -> Value {
        (shape.schema)(&mut self.answers).to_value()
    }

    pub(super) fn of_type<T: JsonSchema>(&mut self) -> Value {
        let schema: Schema = self.answers.subschema_for::<T>();
        schema.to_value()
    }

    /// Puts the schemas into the document, and points its references to them.
    pub(super) fn place(mut self, document: &Value) -> Result<Value> {
        let answers = self.answers.take_definitions(true);
        let requests = self.requests.take_definitions(true);
        let differing = differing(&requests, &answers);
        let mut schemas = answers;
        for (name, schema) in requests {
            let name = if differing.contains(&name) { format!("{name}{READ}") } else { name };
            schemas.insert(name, schema);
        }
        let mut document = document.clone();
        if let Some(components) = document.get_mut("components").and_then(Value::as_object_mut) {
            schemas.sort_keys();
            components.insert("schemas".into(), Value::Object(schemas));
        }
        let mut text = document.to_string();
        for name in &differing {
            text = text.replace(&format!("{REQUESTS}{name}\""), &format!("{PLACE}{name}{READ}\""));
        }
        Ok(serde_json::from_str(&text.replace(REQUESTS, PLACE))?)
    }
}

/// The request types that differ from the response type with the same name, or contain one that does.
fn differing(requests: &Map<String, Value>, answers: &Map<String, Value>) -> BTreeSet<String> {
    let mut differing: BTreeSet<String> = BTreeSet::new();
    loop {
        let before = differing.len();
        for (name, schema) in requests {
            let text = schema.to_string();
            let as_answer: Value = serde_json::from_str(&text.replace(REQUESTS, PLACE)).unwrap_or_default();
            let same = answers.get(name).is_none_or(|other| *other == as_answer);
            let holds = answers.contains_key(name)
                && differing.iter().any(|name| text.contains(&format!("{REQUESTS}{name}\"")));
            if !same || holds {
                differing.insert(name.clone());
            }
        }
        if differing.len() == before {
            return differing;
        }
    }
}
