//! The node catalogue: one file for each type.

mod delay;
mod reply;
mod template;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use kernel::Clock;
use minijinja::Value as View;
use serde_json::{Map, Value};

use crate::fields::Fields;
use crate::output::StepOutput;
use crate::parse::NODE_COMMON;
use crate::{NodeError, Problems};

/// A node of a compiled graph.
#[async_trait]
pub trait Node: Send + Sync {
    /// What the node works on: its fields with their templates filled. Pure; its digest goes into the journal.
    ///
    /// # Errors
    /// A template that cannot be filled.
    fn input(&self, scope: &View) -> Result<Value, NodeError>;

    /// Does the work and yields the node's result.
    ///
    /// # Errors
    /// Whatever made it fail.
    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, NodeError>;

    /// Whether the node writes to the turn's message.
    fn streams(&self) -> bool {
        false
    }

    /// The text that a finished visit had written, so that a resumed run writes it again.
    fn written(&self, _result: &Value) -> Option<String> {
        None
    }

    /// Whether the moment it began must be durable before it begins.
    fn records_start(&self) -> bool {
        false
    }
}

/// What a node may use while it works.
pub struct Call<'a> {
    pub(crate) clock: &'a dyn Clock,
    pub(crate) output: &'a StepOutput<'a>,
    pub(crate) slot: usize,
    /// When this visit first began, also across a restart.
    pub(crate) started_at: DateTime<Utc>,
}

impl Call<'_> {
    /// Appends to the turn's message.
    pub(crate) async fn write(&self, piece: &str) {
        self.output.write(self.slot, piece).await;
    }
}

/// A type of node.
pub struct NodeType {
    /// Its name in a graph.
    pub name: &'static str,
    /// JSON Schema of its own fields.
    pub schema: fn() -> Value,
    /// Reads its fields.
    build: Build,
}

type Build = fn(&mut Fields<'_>, &mut Problems) -> Option<Box<dyn Node>>;

/// Every type there is.
pub static CATALOGUE: [NodeType; 3] = [
    NodeType { name: "template", schema: template::schema, build: template::build },
    NodeType { name: "delay", schema: delay::schema, build: delay::build },
    NodeType { name: "reply", schema: reply::schema, build: reply::build },
];

/// Types of the format that this version does not execute.
pub(crate) const TYPES_LATER: [&str; 38] = [
    "set",
    "transform",
    "filter",
    "merge",
    "json",
    "for_each",
    "sub_workflow",
    "wait_for_input",
    "assert",
    "log",
    "code",
    "llm",
    "agent",
    "embed",
    "classify",
    "extract",
    "judge",
    "http_request",
    "webhook_send",
    "email_send",
    "slack_message",
    "discord_message",
    "telegram_message",
    "rss_read",
    "mcp_call",
    "postgres_query",
    "collection_get",
    "collection_put",
    "collection_query",
    "document_read",
    "chunk",
    "index_upsert",
    "index_search",
    "progress",
    "notice",
    "ask",
    "client_tool",
    "client_effect",
];

/// Makes a node of a known type.
pub(crate) fn build(
    kind: &NodeType,
    pointer: &str,
    fields: &Map<String, Value>,
    problems: &mut Problems,
) -> Option<Box<dyn Node>> {
    let document = Value::Object(fields.clone());
    let mut fields = Fields::of(pointer, &document, problems)?;
    let node = (kind.build)(&mut fields, problems);
    fields.read_elsewhere(&NODE_COMMON);
    fields.refuse_others(problems);
    node
}

/// A template field that must be there and parse.
fn template_field(fields: &mut Fields<'_>, name: &'static str, problems: &mut Problems) -> Option<Value> {
    let text = fields.text(name, problems)?;
    if let Err(message) = crate::template::check_template(text) {
        problems.push(wire::FieldError::new(fields.at(name), "template", message));
        return None;
    }
    Some(Value::String(text.to_owned()))
}
