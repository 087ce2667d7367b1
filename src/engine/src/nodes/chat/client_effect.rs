//! `client_effect`: an action for a chat's page.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::check::Check;
use crate::execute::ports::ImmediateEvent;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_field, text_field};
use crate::template::{as_text, fill, has_holes};
use crate::{NodeError, limits};

/// Maximum characters in a name.
const LONGEST: usize = 64;
const LENGTH: &str = "must have 1 to 64 characters";

pub(crate) const TYPE: NodeType = NodeType {
    name: "client_effect",
    group: "chat",
    summary: "Sends an action to the page of the chat, without storing it in the thread.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{effect, data}`",
    members: &["effect", "data"],
    example: || json!({"name": "mark", "type": "client_effect", "effect": "highlight", "data": {"order": "{{ inputs.message }}"}}),
    build,
};

struct ClientEffect {
    effect: Value,
    data: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["effect"], "properties": {
        "effect": {"type": "string", "minLength": 1, "maxLength": LONGEST,
                   "description": "Name of the action; a template. The page decides what it does."},
        "data": {"description": "An object with templates inside, or a template of one, at most 64 KiB.", "default": {}}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let effect = text_field(fields, "effect", check);
    if let Some(Value::String(text)) = &effect
        && !has_holes(text)
        && !is_name(text)
    {
        let problem = FieldError::new(fields.at("effect"), "length", LENGTH);
        check.note(problem.suggest("\"effect\": \"highlight\""));
    }
    let data = optional_field(fields, "data", check);
    match &data {
        None | Some(Value::Object(_)) => {}
        Some(Value::String(text)) if has_holes(text) => {}
        Some(_) => {
            let problem =
                FieldError::new(fields.at("data"), "type", "must be an object, or a template of one");
            check.note(problem.suggest("\"data\": {…}"));
        }
    }
    Some(Box::new(ClientEffect { effect: effect?, data }))
}

fn is_name(effect: &str) -> bool {
    (1..=LONGEST).contains(&effect.chars().count())
}

#[async_trait]
impl Node for ClientEffect {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let effect = as_text(&fill(&self.effect, scope)?);
        if !is_name(&effect) {
            return Err(NodeError::failed(format!("/effect: {LENGTH}")));
        }
        let data = self.data.as_ref().map(|data| fill(data, scope)).transpose()?;
        let data = data.unwrap_or_else(|| json!({}));
        if !data.is_object() {
            return Err(NodeError::failed("/data: must be an object"));
        }
        limits::check_data("data", &data)?;
        Ok(json!({"effect": effect, "data": data}))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let name = input.get("effect").and_then(Value::as_str).unwrap_or_default().to_owned();
        let data = input.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        call.immediate(ImmediateEvent::Effect { name, data }).await;
        Ok(input)
    }
}
