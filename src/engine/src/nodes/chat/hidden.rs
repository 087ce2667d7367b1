//! `hidden`: context for models in later turns.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::chat::ItemBody;

use crate::check::Check;
use crate::execute::ports::SentItem;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::value_field;
use crate::template::fill;
use crate::{NodeError, limits};

pub(crate) const TYPE: NodeType = NodeType {
    name: "hidden",
    group: "chat",
    summary: "Adds context for models to the thread. The user never sees it.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "an empty object",
    members: &[],
    example: || json!({"name": "context", "type": "hidden", "content": {"order": "{{ inputs.message }}", "state": "shipped"}}),
    build,
};

struct Hidden {
    content: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["content"], "properties": {
        "content": {"description": "Any JSON with templates inside, at most 64 KiB. Models read it as a system message in later turns: a string as it is, anything else as JSON."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let content = value_field(fields, "content", check)?;
    Some(Box::new(Hidden { content }))
}

#[async_trait]
impl Node for Hidden {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let content = fill(&self.content, scope)?;
        limits::check_data("content", &content)?;
        Ok(content)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let body = Some(ItemBody::HiddenContextItem { content: input });
        call.send(SentItem { key: None, body, more: false }).await?;
        Ok(json!({}))
    }

    fn streams(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }
}
