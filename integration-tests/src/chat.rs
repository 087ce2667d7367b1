//! Chat request bodies.

use serde_json::{Value, json};

use crate::Workflow;

/// A message's `input`.
#[must_use]
pub fn input(text: &str) -> Value {
    json!({"content": [{"type": "input_text", "text": text}], "attachments": [], "inference_options": {}})
}

/// `threads.create`.
#[must_use]
pub fn create(workflow: &Workflow, text: &str) -> Value {
    json!({"type": "threads.create", "workflow_id": workflow.id, "params": {"input": input(text)}})
}

/// `threads.add_user_message`.
#[must_use]
pub fn add(workflow: &Workflow, thread: &str, text: &str) -> Value {
    json!({"type": "threads.add_user_message", "workflow_id": workflow.id,
           "params": {"thread_id": thread, "input": input(text)}})
}

/// A request of any type.
#[must_use]
#[allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]
pub fn ask(workflow: &Workflow, kind: &str, params: Value) -> Value {
    json!({"type": kind, "workflow_id": workflow.id, "params": params})
}
