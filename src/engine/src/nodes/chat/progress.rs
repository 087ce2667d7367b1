//! `progress`: shows the run's readers its current activity.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::ImmediateEvent;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::text_field;
use crate::template::{as_text, fill};

pub(crate) const TYPE: NodeType = NodeType {
    name: "progress",
    group: "chat",
    summary: "Shows the workflow's progress in the chat, without storing it in the thread.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{text}`",
    members: &["text"],
    example: || json!({"name": "reading", "type": "progress", "text": "Reading the order …"}),
    build,
};

struct ProgressNode {
    text: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["text"], "properties": {
        "text": {"type": "string", "description": "One line; a template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let text = text_field(fields, "text", check)?;
    Some(Box::new(ProgressNode { text }))
}

#[async_trait]
impl Node for ProgressNode {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        Ok(Value::String(as_text(&fill(&self.text, scope)?)))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let text = as_text(&input);
        call.immediate(ImmediateEvent::Progress(text.clone())).await;
        Ok(json!({"text": text}))
    }
}
