//! `widget`: a card or a list in the chat.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::chat::{ItemBody, WidgetRoot};

use super::{components, content, key};
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::SentItem;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::template::{as_text, fill};

const HELP: &str = "`callboard node show widget` shows an example";

pub(crate) const TYPE: NodeType = NodeType {
    name: "widget",
    group: "chat",
    summary: "Shows a card or a list in the chat, changes it, or removes it.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{key}`",
    members: &["key"],
    example: || {
        json!({"name": "card", "type": "widget", "key": "order", "widget": {"type": "Card", "children": [
            {"type": "Title", "value": "Order 7"},
            {"type": "Text", "id": "state", "value": "{{ inputs.message }}"}]}})
    },
    build,
};

struct Widget {
    content: WidgetContent,
    key: Option<Value>,
    more: bool,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["widget"], "properties": {
        "widget": root_schema("null removes the item with this key."),
        "key": key::schema(),
        "copy_text": copy_text_schema(),
        "more": key::more_schema()}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let key = key::field(fields, check);
    let more = key::more(fields, check);
    let widget = fields.nullable("widget", &mut check.problems);
    if key.is_none() && (more || widget.is_some_and(Value::is_null)) {
        content::require_key(fields.at("key"), check);
    }
    let content = WidgetContent::read(widget, fields, check);
    Some(Box::new(Widget { content: content?, key, more }))
}

#[async_trait]
impl Node for Widget {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut input = self.content.filled(scope)?;
        input.extend([("key".to_owned(), json!(key::filled(self.key.as_ref(), scope)?))]);
        Ok(Value::Object(input))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let body = body(&input)?;
        let key = match input.get("key").and_then(Value::as_str).map(str::to_owned) {
            Some(key) => {
                call.send(SentItem { key: Some(key.clone()), body, more: self.more }).await?;
                key
            }
            None => {
                let key = key::derived(call);
                call.send_new(SentItem { key: Some(key.clone()), body, more: false }).await?;
                key
            }
        };
        Ok(json!({"key": key}))
    }

    fn streams(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }
}

pub(super) fn root_schema(null: &str) -> Value {
    json!({"description": format!(
        "The root component, `Card` or `ListView`: at most 256 KiB, 2,000 components and 32 levels; ids are unique. Templates inside, or a template of it; {null}")})
}

pub(super) fn copy_text_schema() -> Value {
    json!({"type": "string", "description": "Text for the copy button, and for models in later turns; a template. Without it models read the widget as JSON."})
}

/// The fields `widget` and `copy_text`, with templates inside.
pub(super) struct WidgetContent {
    widget: Value,
    copy_text: Option<Value>,
}

impl WidgetContent {
    /// Reads both fields; `widget` is the value of the first.
    pub(super) fn read(widget: Option<&Value>, fields: &mut Fields<'_>, check: &mut Check) -> Option<Self> {
        let copy_text = optional_text_field(fields, "copy_text", check);
        let widget = content::read(widget?, &fields.at("widget"), components::problems, HELP, check)?;
        Some(Self { widget, copy_text })
    }

    pub(super) fn filled(&self, scope: &View) -> Result<Map<String, Value>, NodeError> {
        let copy_text = self.copy_text.as_ref().map(|text| fill(text, scope)).transpose()?;
        let widget = components::as_sent(fill(&self.widget, scope)?);
        Ok(Map::from_iter([
            ("widget".to_owned(), widget),
            ("copy_text".to_owned(), json!(copy_text.as_ref().map(as_text))),
        ]))
    }
}

/// Builds the item from a filled input; `None` if it is to be removed.
///
/// # Errors
/// `node.failed` if clients cannot read the widget.
pub(super) fn body(input: &Value) -> Result<Option<ItemBody>, NodeError> {
    let Some(widget) = input.get("widget").filter(|widget| !widget.is_null()) else { return Ok(None) };
    content::refuse(components::problems(widget, "/widget"))?;
    let copy_text = input.get("copy_text").and_then(Value::as_str).map(str::to_owned);
    let root = widget.as_object().cloned().unwrap_or_default();
    Ok(Some(ItemBody::Widget { widget: WidgetRoot(root), copy_text }))
}
