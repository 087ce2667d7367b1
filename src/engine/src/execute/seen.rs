//! The trace that evaluators read: a rehearsal attempt's inputs and model calls.

use std::time::Duration;

use models::{ModelAnswer, ModelRequest, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::Call;
use super::ports::StepRecord;
use super::visit::Visit;

/// An attempt in a [`Rehearsal`](super::ports::Rehearsal), without secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenAttempt {
    /// The node type; `model`, `tool` or `mcp` for an agent's steps.
    pub kind: &'static str,
    /// The node's filled fields; null if filling failed.
    pub inputs: Value,
    /// Size of `inputs` in JSON bytes.
    pub inputs_size: usize,
    /// Answered model calls, in the order of their answers, without nested nodes' calls.
    pub calls: Vec<SeenCall>,
    /// The attempt's duration, including its calls' waits.
    pub duration: Duration,
}

/// An answered model call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenCall {
    /// `<provider>/<model>`.
    pub model: String,
    /// Its messages, in the format of a graph's `messages`.
    pub messages: Value,
    /// The answer's text.
    pub reply: String,
    /// The tools that it requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tokens; null if the endpoint does not count them.
    pub usage: Option<Usage>,
}

impl Visit<'_> {
    /// Starts a trace without inputs; `None` outside rehearsals.
    pub(super) fn seen(&self) -> Option<Box<SeenAttempt>> {
        self.env.ports.rehearsal?;
        let seen = SeenAttempt {
            kind: self.node.node_type,
            inputs: Value::Null,
            inputs_size: 0,
            calls: Vec::new(),
            duration: Duration::ZERO,
        };
        Some(Box::new(seen))
    }

    /// Removes secrets and records the duration since `started`, in monotonic time.
    pub(super) async fn finish_seen(&self, record: &mut StepRecord, started: Duration) {
        let Some(seen) = &mut record.seen else { return };
        seen.duration = self.env.ports.clock.monotonic().saturating_sub(started);
        seen.inputs = self.redacted(std::mem::take(&mut seen.inputs)).await.unwrap_or_default();
        for call in &mut seen.calls {
            call.messages = self.redacted(std::mem::take(&mut call.messages)).await.unwrap_or_default();
            let reply = self.redacted(Value::String(std::mem::take(&mut call.reply))).await;
            if let Ok(Value::String(reply)) = reply {
                call.reply = reply;
            }
            for tool in &mut call.tool_calls {
                tool.arguments = self.redacted(std::mem::take(&mut tool.arguments)).await.unwrap_or_default();
            }
        }
    }
}

impl StepRecord {
    /// Records the node's inputs and their size in JSON bytes.
    pub(super) fn note_inputs(&mut self, inputs: &Value, size: usize) {
        if let Some(seen) = &mut self.seen {
            seen.inputs.clone_from(inputs);
            seen.inputs_size = size;
        }
    }

    /// Records an attempt's model calls.
    pub(super) fn note_calls(&mut self, call: &Call<'_>) {
        if let Some(seen) = &mut self.seen {
            seen.calls = std::mem::take(&mut *call.seen.lock());
        }
    }
}

impl Call<'_> {
    /// Records an answered model call, in a rehearsal.
    pub(super) fn note_call(&self, model: &str, request: &ModelRequest, answer: &ModelAnswer) {
        if !self.rehearses() {
            return;
        }
        self.seen.lock().push(SeenCall {
            model: model.to_owned(),
            messages: serde_json::to_value(&request.messages).unwrap_or_default(),
            reply: answer.text.clone(),
            tool_calls: answer.tool_calls.clone(),
            usage: answer.usage,
        });
    }
}
