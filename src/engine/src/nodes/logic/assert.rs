//! `assert`: fails unless a condition holds.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{expression_field, optional_text_field};
use crate::template::{as_text, fill, holds};

pub(crate) const TYPE: NodeType = NodeType {
    name: "assert",
    group: "logic",
    summary: "Fails unless a condition holds.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "`{ok: true}`",
    members: &["ok"],
    example: || {
        json!({"name": "has_order", "type": "assert", "when": "inputs.order is defined",
               "message": "The message names no order."})
    },
    build,
};

struct Assert {
    when: String,
    message: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["when"], "properties": {
        "when": {"type": "string", "description": "The condition."},
        "message": {"type": "string", "description": "The error message; a template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let message = optional_text_field(fields, "message", check);
    let when = expression_field(fields, "when", &[], check)?;
    Some(Box::new(Assert { when, message }))
}

#[async_trait]
impl Node for Assert {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        if holds(&self.when, scope)? {
            return Ok(json!({"ok": true}));
        }
        let message = self.message.as_ref().map(|message| fill(message, scope)).transpose()?;
        let message =
            message.map_or_else(|| format!("the condition is false: {}", self.when), |text| as_text(&text));
        Ok(json!({"ok": false, "message": message}))
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        match input.get("message").and_then(Value::as_str) {
            Some(message) => Err(NodeError::failed(message).into()),
            None => Ok(input),
        }
    }
}
