//! `thread`: title and status of the chat's thread.

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Map, Value, json};
use wire::FieldError;
use wire::chat::{ThreadStatus, title_of};

use crate::NodeError;
use crate::check::Check;
use crate::execute::ports::ThreadChange;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::nodes::fields::optional_text_field;
use crate::schema::Schema;
use crate::template::{as_text, fill, has_holes};

const STATUSES: [&str; 3] = ["active", "locked", "closed"];
/// A DNS name.
const HOST: &str =
    r"^([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$";

pub(crate) const TYPE: NodeType = NodeType {
    name: "thread",
    group: "chat",
    summary: "Changes the title of the chat's thread, locks it, closes it or opens it again.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{title, status, reason, image_domains}`: the members that are set, with their templates filled",
    members: &["title", "status", "reason", "image_domains"],
    example: || json!({"name": "done", "type": "thread", "status": "closed", "reason": "Your case is settled."}),
    build,
};

struct Thread {
    /// Fields by name, with templates inside.
    fields: Map<String, Value>,
}

fn schema() -> Value {
    json!({"type": "object", "minProperties": 1, "properties": {
        "title": {"type": "string", "maxLength": 200, "pattern": r"\S",
                  "description": "A template."},
        "status": {"enum": STATUSES, "description":
            "`active`: the thread accepts messages. `locked`: 409 `thread.locked`, until another status is set. `closed`: 409 `thread.closed`."},
        "reason": {"type": "string", "maxLength": 500,
                   "description": "The reason, for people; with `locked` or `closed`. A template."},
        "image_domains": {"type": ["array", "null"], "maxItems": 50,
                          "items": {"type": "string", "maxLength": 253, "pattern": HOST},
                          "description": "Hosts that images of widgets may come from, or null for any; templates inside, or a template of the list."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let texts = ["title", "reason", "status"].map(|name| fields.value(name));
    if texts.iter().all(Option::is_none) && fields.given("image_domains").is_none() {
        let problem = FieldError::new(
            fields.at("status"),
            "required",
            "a title, a status or image domains are required",
        );
        check.note(problem.suggest("\"status\": \"locked\""));
    }
    let mut named = Map::new();
    for name in ["title", "reason"] {
        named.extend(optional_text_field(fields, name, check).map(|text| (name.to_owned(), text)));
    }
    let status = fields.word("status", &STATUSES, &mut check.problems);
    named.extend(status.map(|status| ("status".to_owned(), json!(status))));
    if named.contains_key("reason") && !matches!(status, Some("locked" | "closed")) {
        let problem = FieldError::new(
            fields.at("reason"),
            "status",
            "is allowed only with the status locked or closed",
        );
        check.note(problem.suggest("\"status\": \"locked\""));
    }
    let hosts = fields.given("image_domains");
    if let Some(Value::String(text)) = hosts
        && !has_holes(text)
    {
        let problem =
            FieldError::new(fields.at("image_domains"), "type", "must be a list, or a template of one");
        check.note(problem.suggest("\"image_domains\": [\"images.example.org\"]"));
    } else if let Some(hosts) = hosts
        && check.templates(hosts, &fields.at("image_domains"))
    {
        named.insert("image_domains".to_owned(), hosts.clone());
    }
    for (name, value) in named.iter().filter(|(_, value)| !has_holes(&value.to_string())) {
        let at = fields.at(name);
        let base = at.strip_suffix(&format!("/{name}")).unwrap_or_default();
        for problem in Schema::problems_of(&schema(), &json!({(name): value}), base) {
            check.note(problem.suggest("`callboard node show thread` lists the limits"));
        }
    }
    Some(Box::new(Thread { fields: named }))
}

#[async_trait]
impl Node for Thread {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let mut filled = Map::new();
        for (name, template) in &self.fields {
            let value = fill(template, scope)?;
            let value = match name.as_str() {
                "title" => Value::String(title_of(&as_text(&value))),
                // The database cannot store a NUL.
                "reason" => Value::String(as_text(&value).replace('\0', " ")),
                _ => value,
            };
            filled.insert(name.clone(), value);
        }
        Ok(Value::Object(filled))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        if let Some(first) = Schema::problems_of(&schema(), &input, "").into_iter().next() {
            return Err(NodeError::failed(format!("{}: {}", first.pointer, first.message)).into());
        }
        call.change_thread(change(&input)).await;
        Ok(input)
    }
}

fn change(input: &Value) -> ThreadChange {
    let text = |name: &str| input.get(name).and_then(Value::as_str).map(str::to_owned);
    let host = |host: &Value| host.as_str().map(str::to_ascii_lowercase);
    let hosts = |hosts: &Value| hosts.as_array().map(|hosts| hosts.iter().filter_map(host).collect());
    ThreadChange {
        title: text("title"),
        status: text("status").and_then(|status| ThreadStatus::read(&status, text("reason"))),
        image_domains: input.get("image_domains").map(hosts),
    }
}
