//! `json`: reads JSON from a text, or writes a value as JSON.

use async_trait::async_trait;
use kernel::json::{self, JsonError, Numbers};
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{text_field, value_field};
use crate::template::{as_text, fill};

pub(crate) const TYPE: NodeType = NodeType {
    name: "json",
    group: "logic",
    summary: "Parses JSON from a string, or converts a value to JSON.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "With `parse` the value, with `stringify` the string.",
    members: &[],
    example: || json!({"name": "body", "type": "json", "parse": "{{ inputs.body }}"}),
    build,
};

enum Json {
    Parse(Value),
    Stringify(Value),
}

fn schema() -> Value {
    json!({"type": "object", "properties": {
        "parse": {"type": "string", "description": "The string to parse; a template."},
        "stringify": {"description": "The value to convert; strings inside are templates."}},
        "oneOf": [{"required": ["parse"]}, {"required": ["stringify"]}]})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let node = match (fields.value("parse").is_some(), fields.value("stringify").is_some()) {
        (true, false) => Json::Parse(text_field(fields, "parse", check)?),
        (false, true) => Json::Stringify(value_field(fields, "stringify", check)?),
        (both, _) => {
            let (code, message) = if both {
                ("exclusive", "has either 'parse' or 'stringify'")
            } else {
                ("required", "needs 'parse' or 'stringify'")
            };
            check.note(FieldError::new(fields.at("parse"), code, message).suggest(r#""parse": "{{ … }}""#));
            return None;
        }
    };
    Some(Box::new(node))
}

#[async_trait]
impl Node for Json {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        match self {
            Self::Parse(value) | Self::Stringify(value) => fill(value, scope),
        }
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        match self {
            Self::Stringify(_) => Ok(Value::String(input.to_string())),
            Self::Parse(_) => json::read(&as_text(&input), Numbers::Values).map_err(|error| {
                let message = match error {
                    JsonError::Syntax(error) => format!("the text is not JSON: {error}"),
                    JsonError::Rounded(number) => number.to_string(),
                };
                NodeError::failed(message).into()
            }),
        }
    }
}
