//! `log`: writes a line to the service's log.

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

/// Maximum characters per line.
const LONGEST: usize = 4_096;

pub(crate) const TYPE: NodeType = NodeType {
    name: "log",
    group: "logic",
    summary: "Writes a line to the service's log.",
    effect: Effect::Speaks,
    secrets: &[],
    schema,
    result: "`{message, level}`",
    members: &["message", "level"],
    example: || json!({"name": "note", "type": "log", "message": "{{ inputs.lines | length }} lines", "level": "info"}),
    build,
};

struct Log {
    message: Value,
    level: &'static str,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["message"], "properties": {
        "message": {"type": "string", "description": "The line; a template, truncated after 4,096 characters."},
        "level": {"enum": ["debug", "info", "warn", "error"], "default": "info", "description": "Log level. A line with `error` is logged at WARN: lines at ERROR are the service's own. Every execution writes its line, so callers of the workflow can fill the log; use `debug` in a published chat."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let level = fields.word("level", &["debug", "info", "warn", "error"], &mut check.problems);
    let message = text_field(fields, "message", check)?;
    Some(Box::new(Log { message, level: level.unwrap_or("info") }))
}

#[async_trait]
impl Node for Log {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        let message = as_text(&fill(&self.message, scope)?);
        Ok(json!({"message": message.chars().take(LONGEST).collect::<String>(), "level": self.level}))
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let message = input.get("message").and_then(Value::as_str).unwrap_or_default();
        let node = call.path();
        // The text is a field, so that a graph cannot break a log line.
        match self.level {
            "debug" => tracing::debug!(node, text = message, "workflow"),
            // ERROR lines are reserved for the service itself. Unlike the service's warnings, these have no limit: the
            // author expects a line for each execution.
            level @ ("warn" | "error") => tracing::warn!(node, level, text = message, "workflow"),
            _ => tracing::info!(node, text = message, "workflow"),
        }
        Ok(input)
    }
}
