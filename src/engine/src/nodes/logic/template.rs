//! `template`: fills a text.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::template::{as_text, fill};

pub(crate) const TYPE: NodeType = NodeType {
    name: "template",
    group: "logic",
    summary: "Fills a text template.",
    effect: Effect::Pure,
    secrets: &[],
    schema,
    result: "`{text}`",
    members: &["text"],
    example: || json!({"name": "greeting", "type": "template", "template": "Good day, {{ inputs.name }}."}),
    build,
};

struct Template {
    template: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["template"], "properties": {
        "template": {"type": "string", "description": "The text to fill."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let template = text_field(fields, "template", check)?;
    Some(Box::new(Template { template }))
}

#[async_trait]
impl Node for Template {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.template, scope)
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, Failure> {
        Ok(json!({"text": as_text(&input)}))
    }
}
