//! `template`: fills a text.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};

use super::{Call, Node, template_field};
use crate::fields::Fields;
use crate::template::{as_text, fill};
use crate::{NodeError, Problems};

struct Template {
    template: Value,
}

pub(super) fn schema() -> Value {
    json!({"type": "object", "required": ["template"], "properties": {
        "template": {"type": "string", "description": "The text to fill."}}})
}

pub(super) fn build(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Box<dyn Node>> {
    let template = template_field(fields, "template", problems)?;
    Some(Box::new(Template { template }))
}

#[async_trait]
impl Node for Template {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.template, scope)
    }

    async fn run(&self, input: Value, _call: &Call<'_>) -> Result<Value, NodeError> {
        Ok(json!({"text": as_text(&input)}))
    }
}
