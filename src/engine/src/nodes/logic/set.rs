//! `set`: assigns names to values.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::value_field;
use crate::template::fill;

pub(crate) const TYPE: NodeType = NodeType {
    name: "set",
    group: "logic",
    summary: "Sets named values.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "The values after the templates are filled.",
    members: &[],
    example: || json!({"name": "order", "type": "set", "values": {"id": "{{ inputs.id }}", "urgent": true}}),
    build,
};

struct Set {
    values: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["values"], "properties": {
        "values": {"type": "object", "description": "Names and their values; strings are templates."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let values = value_field(fields, "values", check)?;
    if !values.is_object() {
        check.note(
            FieldError::new(fields.at("values"), "type", "must be an object")
                .suggest(r#"{"<name>": <value>}"#),
        );
        return None;
    }
    Some(Box::new(Set { values }))
}

#[async_trait]
impl Node for Set {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.values, scope)
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        Ok(input)
    }
}
