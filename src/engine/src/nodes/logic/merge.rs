//! `merge`: combines several objects or lists into one.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};

use crate::NodeError;
use crate::channel::kind;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{list, list_field};
use crate::template::fill;

pub(crate) const TYPE: NodeType = NodeType {
    name: "merge",
    group: "logic",
    summary: "Merges several objects into one, or several lists into one.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "The object, in which later members take precedence, or the list.",
    members: &[],
    example: || json!({"name": "all", "type": "merge", "inputs": ["{{ results.defaults }}", "{{ inputs.options }}"]}),
    build,
};

struct Merge {
    inputs: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["inputs"], "properties": {
        "inputs": {"type": ["array", "string"], "description": "Objects, or lists; strings are templates of them."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let inputs = list_field(fields, "inputs", check)?;
    Some(Box::new(Merge { inputs }))
}

#[async_trait]
impl Node for Merge {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.inputs, scope)
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        let inputs = list(input)?;
        if inputs.iter().all(Value::is_object) {
            let members = inputs.into_iter().filter_map(|input| match input {
                Value::Object(members) => Some(members),
                _ => None,
            });
            return Ok(Value::Object(members.fold(Map::new(), |mut all, more| {
                all.extend(more);
                all
            })));
        }
        let mut all = Vec::new();
        for input in inputs {
            match input {
                Value::Array(more) => all.extend(more),
                other => {
                    let message = format!("inputs must be all objects or all lists; one is {}", kind(&other));
                    return Err(NodeError::failed(message).into());
                }
            }
        }
        Ok(Value::Array(all))
    }
}
