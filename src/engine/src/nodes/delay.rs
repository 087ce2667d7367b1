//! `delay`: waits. Its start is durable, so a restart waits only for the rest.

use std::time::Duration;

use async_trait::async_trait;
use minijinja::Value as View;
use serde_json::{Value, json};
use wire::FieldError;

use super::{Call, Node};
use crate::fields::Fields;
use crate::template::{check, fill};
use crate::{NodeError, Problems};

/// Longest delay: a year, in seconds.
const LONGEST: f64 = 31_536_000.0;

struct Delay {
    seconds: Value,
}

pub(super) fn schema() -> Value {
    json!({"type": "object", "required": ["seconds"], "properties": {
        "seconds": {"type": ["number", "string"], "description": "How long, or a template of it."}}})
}

pub(super) fn build(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Box<dyn Node>> {
    let seconds = fields.required("seconds", problems)?;
    let good = match seconds {
        Value::Number(number) => number.as_f64().is_some_and(|seconds| (0.0..=LONGEST).contains(&seconds)),
        Value::String(template) => check(template).is_ok(),
        _ => false,
    };
    if !good {
        let message = format!("must be a number from 0 to {LONGEST}, or a template of one");
        problems.push(FieldError::new(fields.at("seconds"), "range", message));
        return None;
    }
    Some(Box::new(Delay { seconds: seconds.clone() }))
}

#[async_trait]
impl Node for Delay {
    fn input(&self, scope: &View) -> Result<Value, NodeError> {
        fill(&self.seconds, scope)
    }

    async fn run(&self, input: Value, call: &Call<'_>) -> Result<Value, NodeError> {
        let seconds = input.as_f64().filter(|seconds| (0.0..=LONGEST).contains(seconds));
        let seconds = seconds.ok_or_else(|| NodeError::failed(format!("{input} is no delay in seconds")))?;
        let passed = (call.clock.now() - call.started_at).to_std().unwrap_or(Duration::ZERO);
        call.clock.sleep(Duration::from_secs_f64(seconds).saturating_sub(passed)).await;
        Ok(json!({"seconds": input}))
    }

    fn records_start(&self) -> bool {
        true
    }
}
