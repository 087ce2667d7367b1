//! `show`: tasks, lists of tasks, and the end of a turn.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;
use wire::chat::ItemBody;

use super::{icons, key};
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::SentItem;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::schema::Schema;
use crate::template::{fill, has_holes};

/// Fields of the format that this version does not execute.
const LATER: [&str; 3] = ["more", "image", "progress"];
const KINDS: [&str; 3] = ["task", "workflow", "end_of_turn"];

pub(crate) const TYPE: NodeType = NodeType {
    name: "show",
    group: "chat",
    summary: "Shows a task, a list of tasks, or the end of the turn in the chat.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{kind, key}`",
    members: &["kind", "key"],
    example: || {
        json!({"name": "steps", "type": "show", "kind": "workflow", "key": "work",
               "workflow": {"type": "custom", "tasks": [
                   {"type": "custom", "title": "Reading {{ inputs.message }}", "status_indicator": "loading"}]}})
    },
    build,
};

struct Show {
    kind: &'static str,
    key: Option<Value>,
    /// `None` for the end of a turn; null removes the item with the key.
    content: Option<Value>,
}

fn source(kind: &str, place: &str) -> Value {
    json!({"type": "object", "required": ["type", "title", place], "properties": {
        "type": {"const": kind}, "title": {"type": "string"}, "description": {"type": "string"},
        "timestamp": {"type": "string", "format": "date-time"}, "group": {"type": "string"},
        "attribution": {"type": "string"}, (place): {"type": "string"}}})
}

fn task_schema() -> Value {
    let status = json!({"enum": ["none", "loading", "complete"]});
    let title = json!({"type": "string"});
    let kind = |kind: &str, required: Value, mut own: Value| {
        if let Some(own) = own.as_object_mut() {
            own.insert("type".to_owned(), json!({"const": kind}));
            own.insert("title".to_owned(), title.clone());
            own.insert("status_indicator".to_owned(), status.clone());
        }
        json!({"if": {"properties": {"type": {"const": kind}}, "required": ["type"]},
               "then": {"properties": own, "required": required, "additionalProperties": false}})
    };
    let sources =
        |kind: &str, place: &str| json!({"type": "array", "maxItems": 100, "items": source(kind, place)});
    json!({"type": "object", "required": ["type"],
           "properties": {"type": {"enum": ["custom", "web_search", "thought", "file", "image"]}},
           "allOf": [
               kind("custom", json!([]), json!({"icon": icons::schema(), "content": {"type": "string"}})),
               kind("web_search", json!(["queries", "sources"]), json!({
                   "title_query": {"type": "string"}, "queries": {"type": "array", "items": {"type": "string"}},
                   "sources": sources("url", "url")})),
               kind("thought", json!(["content"]), json!({"content": {"type": "string"}})),
               kind("file", json!(["sources"]), json!({"sources": sources("file", "filename")})),
               kind("image", json!([]), json!({}))]})
}

fn list_schema() -> Value {
    json!({"type": "object", "required": ["type", "tasks"], "additionalProperties": false, "properties": {
        "type": {"enum": ["custom", "reasoning"]},
        "tasks": {"type": "array", "maxItems": 100, "items": task_schema()},
        "summary": {"type": "object", "oneOf": [
            {"required": ["title"], "additionalProperties": false,
             "properties": {"title": {"type": "string"}, "icon": icons::schema()}},
            {"required": ["duration"], "additionalProperties": false,
             "properties": {"duration": {"type": "integer", "minimum": 0}}}]},
        "expanded": {"type": "boolean"}}})
}

fn schema() -> Value {
    json!({"type": "object", "required": ["kind"], "properties": {
        "kind": {"enum": KINDS, "description": "What to show; the field of the same name contains it."},
        "key": key::schema(),
        "task": {"description": "A task of type `custom` (`title?`, `icon?`, `content?`), `web_search` (`title?`, `title_query?`, `queries`, `sources`), `thought` (`title?`, `content`), `file` (`title?`, `sources`) or `image` (`title?`), each with `status_indicator?`; null removes the item. Templates inside, or a template of it."},
        "workflow": {"description": "`{type: custom or reasoning, tasks, summary?, expanded?}` with at most 100 tasks; null removes the item. Templates inside, or a template of it."}}})
}

/// Problems of a filled task or list, with pointers below `base`.
fn problems(kind: &str, content: &Value, base: &str) -> Vec<FieldError> {
    let schema = if kind == "task" { task_schema() } else { list_schema() };
    Schema::problems_of(&schema, content, base)
}

/// Whether a problem of a value does not depend on what its templates return. What is wrong with an object is its members' names, but
/// for a summary, which is one of two.
fn is_certain(content: &Value, problem: &FieldError, base: &str) -> bool {
    let pointer = problem.pointer.strip_prefix(base).unwrap_or_default();
    match content.pointer(pointer) {
        Some(Value::Object(_)) if !pointer.ends_with("/summary") => true,
        Some(value) => is_literal(value),
        None => false,
    }
}

fn is_literal(value: &Value) -> bool {
    match value {
        Value::String(text) => !has_holes(text),
        Value::Array(items) => items.iter().all(is_literal),
        Value::Object(members) => members.values().all(is_literal),
        _ => true,
    }
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    fields.refuse_later(&LATER, &mut check.problems);
    fields.required("kind", &mut check.problems);
    let kind = fields.word("kind", &KINDS, &mut check.problems);
    let key = key::field(fields, check);
    for other in ["task", "workflow"] {
        if fields.value(other).is_some() && kind.is_some_and(|kind| kind != other) {
            let problem = FieldError::new(fields.at(other), "kind", "is of another kind");
            check.note(problem.suggest(format!("\"kind\": \"{other}\"")));
        }
    }
    let kind = kind?;
    let content = match kind {
        "end_of_turn" => None,
        kind => {
            let content = fields.nullable(kind, &mut check.problems)?.clone();
            if content.is_null() && key.is_none() {
                let problem = FieldError::new(fields.at("key"), "required", "is required to remove an item");
                check.note(problem.suggest("\"key\": \"work\""));
                return None;
            }
            if !check.templates(&content, &fields.at(kind)) {
                return None;
            }
            if !content.is_null() {
                let base = fields.at(kind);
                let found = problems(kind, &content, &base).into_iter();
                for problem in found.filter(|problem| is_certain(&content, problem, &base)) {
                    check.note_at_saving(problem.suggest("`callboard node show show` lists the members"));
                }
            }
            Some(content)
        }
    };
    Some(Box::new(Show { kind, key, content }))
}

#[async_trait]
impl Node for Show {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let key = key::filled(self.key.as_ref(), scope)?;
        let content = self.content.as_ref().map(|content| fill(content, scope)).transpose()?;
        Ok(json!({"key": key, "content": content}))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let key = input.get("key").and_then(Value::as_str).map(str::to_owned);
        let body = self.body(input.get("content").cloned().unwrap_or_default())?;
        if body.is_some() || key.is_some() {
            call.send(SentItem { key: key.clone(), body }).await?;
        }
        Ok(json!({"kind": self.kind, "key": key}))
    }

    fn streams(&self) -> bool {
        true
    }

    fn repeats(&self) -> bool {
        true
    }
}

impl Show {
    fn body(&self, content: Value) -> Result<Option<ItemBody>, NodeError> {
        if self.kind == "end_of_turn" {
            return Ok(Some(ItemBody::EndOfTurn));
        }
        if content.is_null() {
            return Ok(None);
        }
        if let Some(first) = problems(self.kind, &content, &format!("/{}", self.kind)).into_iter().next() {
            return Err(NodeError::failed(format!("{}: {}", first.pointer, first.message)));
        }
        let wrong = |error: serde_json::Error| NodeError::failed(format!("/{}: {error}", self.kind));
        Ok(Some(match self.kind {
            "task" => ItemBody::Task { task: serde_json::from_value(content).map_err(wrong)? },
            _ => ItemBody::Workflow { workflow: serde_json::from_value(content).map_err(wrong)? },
        }))
    }
}
