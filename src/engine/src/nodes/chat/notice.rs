//! `notice`: a message outside the conversation.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::chat::NoticeLevel;

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::ImmediateEvent;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::{optional_text_field, text_field};
use crate::template::{as_text, fill};

pub(crate) const TYPE: NodeType = NodeType {
    name: "notice",
    group: "chat",
    summary: "Shows a message outside the conversation, without storing it in the thread.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{level, message, title}`",
    members: &["level", "message", "title"],
    example: || {
        json!({"name": "late", "type": "notice", "level": "warning", "title": "Answers may be late",
               "message": "The order system is slow today."})
    },
    build,
};

struct Notice {
    level: NoticeLevel,
    word: &'static str,
    message: Value,
    title: Option<Value>,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["message"], "properties": {
        "message": {"type": "string", "description": "Markdown; a template."},
        "title": {"type": "string", "description": "A heading; a template."},
        "level": {"enum": ["info", "warning", "danger"], "default": "info", "description": "Level of the message."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let word = fields.word("level", &["info", "warning", "danger"], &mut check.problems).unwrap_or("info");
    let level = match word {
        "warning" => NoticeLevel::Warning,
        "danger" => NoticeLevel::Danger,
        _ => NoticeLevel::Info,
    };
    let title = optional_text_field(fields, "title", check);
    let message = text_field(fields, "message", check)?;
    Some(Box::new(Notice { level, word, message, title }))
}

#[async_trait]
impl Node for Notice {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let title = self.title.as_ref().map(|title| fill(title, scope)).transpose()?;
        let message = as_text(&fill(&self.message, scope)?);
        Ok(json!({"level": self.word, "message": message, "title": title.map(|title| as_text(&title))}))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
        let (level, message, title) = (self.level, text("message").unwrap_or_default(), text("title"));
        call.immediate(ImmediateEvent::Notice { level, message, title }).await;
        Ok(input)
    }
}
