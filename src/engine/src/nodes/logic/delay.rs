//! `delay`: waits. Its start is durable, so a restart waits only for the remaining time.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use crate::NodeError;
use crate::check::Check;
use crate::execute::{Call, Effect, Failure, Node, NodeType};
use crate::graph::NodeSpec;
use crate::graph::fields::Fields;
use crate::template::{fill, has_holes};

/// Maximum delay: a year, in seconds.
const LONGEST: f64 = 31_536_000.0;

pub(crate) const TYPE: NodeType = NodeType {
    name: "delay",
    group: "logic",
    summary: "Waits for a given time; after a restart of the service, only for the rest of it.",
    effect: Effect::Wait,
    secrets: &[],
    schema,
    result: "`{seconds}`",
    members: &["seconds"],
    example: || json!({"name": "pause", "type": "delay", "seconds": 1.5}),
    build,
};

struct Delay {
    seconds: Value,
}

fn schema() -> Value {
    json!({"type": "object", "required": ["seconds"], "properties": {
        "seconds": {"type": ["number", "string"], "minimum": 0, "maximum": LONGEST,
                    "description": "Number of seconds, or a template."}}})
}

fn build(fields: &mut Fields<'_>, _spec: &NodeSpec, check: &mut Check) -> Option<Box<dyn Node>> {
    let seconds = fields.required("seconds", &mut check.problems)?;
    if let Value::String(template) = seconds
        && has_holes(template)
    {
        if !check.template(template, &fields.at("seconds")) {
            return None;
        }
    } else if length(seconds).is_none() {
        let message = format!("must be a number from 0 to {LONGEST}, or a template of one");
        let problem = FieldError::new(fields.at("seconds"), "range", message);
        check.note(problem.suggest(r#""seconds": 1.5 or "seconds": "{{ inputs.seconds }}""#));
        return None;
    }
    Some(Box::new(Delay { seconds: seconds.clone() }))
}

/// Seconds within bounds, including a text made by a template.
fn length(seconds: &Value) -> Option<f64> {
    let number = match seconds {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_f64(),
    };
    number.filter(|seconds| (0.0..=LONGEST).contains(seconds))
}

#[async_trait]
impl Node for Delay {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.seconds, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, Failure> {
        let seconds = length(&input).ok_or_else(|| {
            NodeError::failed(format!("{input} is not a delay from 0 to {LONGEST} seconds"))
        })?;
        if call.rehearses() {
            return Ok(json!({"seconds": seconds}));
        }
        let now = call.clock().now();
        let passed = (now - call.started_at).to_std().unwrap_or(Duration::ZERO);
        call.wait_until(now + Duration::from_secs_f64(seconds).saturating_sub(passed)).await;
        Ok(json!({"seconds": seconds}))
    }

    fn records_start(&self) -> bool {
        true
    }
}
