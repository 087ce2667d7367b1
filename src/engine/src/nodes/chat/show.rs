//! `show`: tasks, task lists, images, and the end of a turn.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;
use wire::chat::ItemBody;

use super::{content, icons, image, key, sources};
use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::SentItem;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::schema::Schema;
use crate::template::fill;

const KINDS: [&str; 4] = ["task", "workflow", "image", "end_of_turn"];
const HELP: &str = "`callboard node show show` lists the members";

pub(crate) const TYPE: NodeType = NodeType {
    name: "show",
    group: "chat",
    summary: "Shows a task, a list of tasks, an image or the end of the turn in the chat.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{kind, key}`; for an image that the thread keeps also `image`, its id",
    members: &["kind", "key", "image"],
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
    more: bool,
    /// `None` for the end of a turn and for an image still being generated; null removes the item with the key.
    content: Option<Value>,
    progress: Option<Value>,
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
    let sources = |kind: &str| json!({"type": "array", "maxItems": 100, "items": sources::schema(kind)});
    json!({"type": "object", "required": ["type"],
           "properties": {"type": {"enum": ["custom", "web_search", "thought", "file", "image"]}},
           "allOf": [
               kind("custom", json!([]), json!({"icon": icons::schema(), "content": {"type": "string"}})),
               kind("web_search", json!(["queries", "sources"]), json!({
                   "title_query": {"type": "string"}, "queries": {"type": "array", "items": {"type": "string"}},
                   "sources": sources("url")})),
               kind("thought", json!(["content"]), json!({"content": {"type": "string"}})),
               kind("file", json!(["sources"]), json!({"sources": sources("file")})),
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
        "kind": {"enum": KINDS, "description": "The kind of item to show; the field of the same name contains it."},
        "key": key::schema(),
        "more": key::more_schema(),
        "task": {"description": "A task of type `custom` (`title?`, `icon?`, `content?`), `web_search` (`title?`, `title_query?`, `queries`, `sources`), `thought` (`title?`, `content`), `file` (`title?`, `sources`, at most 100) or `image` (`title?`), each with `status_indicator?`; null removes the item. Templates inside, or a template of it."},
        "workflow": {"description": "`{type: custom or reasoning, tasks, summary?, expanded?}` with at most 100 tasks; null removes the item. Templates inside, or a template of it."},
        "image": {"description": "`{url}` (https), `{attachment}` (the id of an image in the thread), or `{base64}` (a PNG, JPEG, GIF or WebP of at most 5 MiB, which the thread keeps); absent while it is generated; null removes the item. Templates inside, or a template of it."},
        "progress": {"type": "number", "minimum": 0, "maximum": 1, "description": "Progress of an image with `more`; a number, or a template of one."}}})
}

fn task_problems(task: &Value, base: &str) -> Vec<FieldError> {
    Schema::problems_of(&task_schema(), task, base)
}

fn list_problems(list: &Value, base: &str) -> Vec<FieldError> {
    Schema::problems_of(&list_schema(), list, base)
}

fn progress_problems(progress: &Value, base: &str) -> Vec<FieldError> {
    Schema::problems_of(&json!({"type": "number", "minimum": 0, "maximum": 1}), progress, base)
}

/// Returns the check for the field that belongs to a kind.
fn problems_of(kind: &str) -> content::Problems {
    match kind {
        "task" => task_problems,
        "image" => image::problems,
        _ => list_problems,
    }
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    fields.required("kind", &mut check.problems);
    let kind = fields.word("kind", &KINDS, &mut check.problems);
    let key = key::field(fields, check);
    let more = key::more(fields, check);
    for (other, of) in [("task", "task"), ("workflow", "workflow"), ("image", "image"), ("progress", "image")]
    {
        if fields.value(other).is_some() && kind.is_some_and(|kind| kind != of) {
            let problem = FieldError::new(fields.at(other), "kind", "is of another kind");
            check.note(problem.suggest(format!("\"kind\": \"{of}\"")));
        }
    }
    let kind = kind?;
    let value = match kind {
        "end_of_turn" => None,
        "image" => fields.given(kind),
        kind => Some(fields.nullable(kind, &mut check.problems)?),
    };
    if key.is_none() && (more || value.is_some_and(Value::is_null)) {
        content::require_key(fields.at("key"), check);
    }
    let content = match value {
        Some(value) => Some(content::read(value, &fields.at(kind), problems_of(kind), HELP, check)?),
        None => None,
    };
    let progress = match fields.value("progress") {
        Some(value) => {
            Some(content::read(value, &fields.at("progress"), progress_problems, "\"progress\": 0.5", check)?)
        }
        None => None,
    };
    Some(Box::new(Show { kind, key, more, content, progress }))
}

#[async_trait]
impl Node for Show {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let key = key::filled(self.key.as_ref(), scope)?;
        let mut input = Map::from_iter([("key".to_owned(), json!(key))]);
        for (name, template) in [("content", &self.content), ("progress", &self.progress)] {
            if let Some(template) = template {
                input.insert(name.to_owned(), fill(template, scope)?);
            }
        }
        Ok(Value::Object(input))
    }

    async fn run(&self, mut input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let key = key_of(&input);
        let content = input.get_mut("content").map(Value::take);
        let body = match content {
            Some(Value::Null) => None,
            content => Some(self.body(content, input.get("progress"), call).await?),
        };
        let mut result =
            Map::from_iter([("kind".to_owned(), json!(self.kind)), ("key".to_owned(), json!(key))]);
        if let Some(ItemBody::GeneratedImage { image: Some(image), .. }) = &body
            && image.url.is_empty()
        {
            result.insert("image".to_owned(), json!(image.id));
        }
        self.send(key, body, call).await?;
        Ok(Value::Object(result))
    }

    async fn say_again(
        &self,
        result: &Value,
        call: &Call<'_>,
        input: &Result<Value, NodeError>,
    ) -> Result<(), Failure> {
        let input = input.clone()?;
        match result.get("image").and_then(Value::as_str) {
            // The image was checked and stored then.
            Some(id) => {
                let image = Some(image::kept(id.to_owned()));
                let body =
                    ItemBody::GeneratedImage { image, progress: self.progress(input.get("progress"))? };
                self.send(key_of(&input), Some(body), call).await
            }
            None => self.run(input, call).await.map(drop),
        }
    }

    fn streams(&self) -> bool {
        true
    }

    fn shows_images(&self) -> bool {
        self.kind == "image"
    }

    fn repeats(&self) -> bool {
        true
    }
}

impl Show {
    /// Builds an item from filled content.
    async fn body(
        &self,
        content: Option<Value>,
        progress: Option<&Value>,
        call: &Call<'_>,
    ) -> Result<ItemBody, Failure> {
        if let Some(content) = &content {
            content::refuse(problems_of(self.kind)(content, &format!("/{}", self.kind)))?;
        }
        let wrong = |error: serde_json::Error| NodeError::failed(format!("/{}: {error}", self.kind));
        let content = content.unwrap_or_default();
        Ok(match self.kind {
            "end_of_turn" => ItemBody::EndOfTurn,
            "task" => ItemBody::Task { task: serde_json::from_value(content).map_err(wrong)? },
            "image" => {
                let progress = self.progress(progress)?;
                ItemBody::GeneratedImage { image: image::read(content, call).await?, progress }
            }
            _ => ItemBody::Workflow { workflow: serde_json::from_value(content).map_err(wrong)? },
        })
    }

    /// An image's progress. Only an open item is in progress.
    fn progress(&self, progress: Option<&Value>) -> Result<Option<f64>, NodeError> {
        if let Some(progress) = progress {
            content::refuse(progress_problems(progress, "/progress"))?;
        }
        Ok(progress.and_then(Value::as_f64).filter(|_| self.more))
    }

    /// `None` removes the item with the key.
    async fn send(
        &self,
        key: Option<String>,
        body: Option<ItemBody>,
        call: &Call<'_>,
    ) -> Result<(), Failure> {
        if body.is_some() || key.is_some() {
            call.send(SentItem { key, body, more: self.more }).await?;
        }
        Ok(())
    }
}

fn key_of(input: &Value) -> Option<String> {
    input.get("key").and_then(Value::as_str).map(str::to_owned)
}
