//! What an attempt in a rehearsal was given and has asked models: the trace that evaluators read.

use std::time::Duration;

use models::{ModelAnswer, ModelRequest, ToolCall, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::attempt::Visit;
use super::call::Call;
use super::ports::StepRecord;

/// An attempt in a [`Rehearsal`](super::ports::Rehearsal), without secrets.
#[derive(Debug, Clone, PartialEq)]
pub struct SeenAttempt {
    /// The type of the node; `model`, `tool` or `mcp` for what an agent does.
    pub kind: &'static str,
    /// The fields of the node, filled; null if that failed.
    pub inputs: Value,
    /// Bytes of `inputs` as JSON.
    pub inputs_size: usize,
    /// Answered calls of models, in the order of their answers, without those of nodes inside.
    pub calls: Vec<SeenCall>,
    /// How long the attempt took, the waits of its calls included.
    pub duration: Duration,
}

/// An answered call of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SeenCall {
    /// `<provider>/<model>`.
    pub model: String,
    /// What it was asked, as in `messages` of a graph.
    pub messages: Value,
    /// The text of its answer.
    pub reply: String,
    /// The tools that it wanted called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
    /// Tokens; null if the endpoint does not count them.
    pub usage: Option<Usage>,
}

impl Visit<'_> {
    /// An attempt whose input is not known yet; `None` outside of rehearsals.
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

    /// Removes secrets, and notes how long the attempt took that started at `started`, in monotonic time.
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
    /// Notes what the node is given, with its bytes as JSON.
    pub(super) fn note_inputs(&mut self, inputs: &Value, size: usize) {
        if let Some(seen) = &mut self.seen {
            seen.inputs.clone_from(inputs);
            seen.inputs_size = size;
        }
    }

    /// Notes the calls of models that an attempt has made.
    pub(super) fn note_calls(&mut self, call: &Call<'_>) {
        if let Some(seen) = &mut self.seen {
            seen.calls = std::mem::take(&mut *call.seen.lock());
        }
    }
}

impl Call<'_> {
    /// Keeps an answered call of a model, in a rehearsal.
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
