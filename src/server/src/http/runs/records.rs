//! Maps rows to API records.

use actors::kinds::workflow::RunOptions;
use kernel::ThreadId;
use serde::Deserialize;
use serde_json::Value;
use store::{ListedRun, OpenQuestion, StoreError, StoredDelivery, StoredRun, StoredStep};
use uuid::Uuid;
use wire::chat::ItemBody;
use wire::{
    DeliveryRecord, DeliveryState, RunProblem, RunRecord, RunState, RunSummary, TraceStep, WaitKind, WaitsFor,
};

use crate::http::time;

/// A run's record with its open questions.
pub(super) fn run(row: StoredRun, version: Option<i32>, questions: Vec<OpenQuestion>) -> RunRecord {
    let options: Option<RunOptions> = row.options.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let options = options.unwrap_or_default();
    let (error, warning) = problems(row.status, row.error.as_deref());
    RunRecord {
        id: row.id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        version,
        version_id: row.version_id.to_string(),
        status: row.status,
        inputs: value(Some(&row.inputs)),
        output: value(row.output.as_deref()),
        error,
        warning,
        trigger: row.trigger,
        waits_for: questions.into_iter().map(waits_for).collect(),
        continued_by: None,
        resumes_at: None,
        origin_run_id: origin_of(&options, row.continues).map(|run| run.to_string()),
        metadata: options.metadata,
        created_at: time(row.created_at),
        started_at: row.started_at.map(time),
        finished_at: row.finished_at.map(time),
    }
}

/// The run that this run repeats from a step on, or whose turn it continues.
fn origin_of(options: &RunOptions, continues: Option<Uuid>) -> Option<Uuid> {
    options.origin.as_ref().map(|origin| origin.run).or(continues)
}

/// A run in a list.
pub(super) fn summary(row: ListedRun) -> Result<RunSummary, StoreError> {
    let options: Option<RunOptions> = row.options.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let origin = origin_of(&options.unwrap_or_default(), row.continues);
    let status = RunState::from_name(&row.status);
    let status = status.ok_or_else(|| StoreError::Corrupt(format!("run status {}", row.status)))?;
    let (error, warning) = problems(status, row.error.as_deref());
    Ok(RunSummary {
        id: row.id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        workflow_handle: row.handle,
        workflow_name: row.name,
        version: row.number,
        version_id: row.version_id.to_string(),
        status,
        trigger: row.trigger,
        error,
        warning,
        waits: row.waits,
        origin_run_id: origin.map(|run| run.to_string()),
        thread_id: row.thread_id.map(|id| ThreadId(id).to_string()),
        created_at: time(row.created_at),
        started_at: row.started_at.map(time),
        finished_at: row.finished_at.map(time),
    })
}

/// The record as of acceptance.
pub(super) fn as_begun(row: StoredRun, version: Option<i32>) -> RunRecord {
    let begun = StoredRun {
        status: RunState::Queued,
        output: None,
        error: None,
        started_at: None,
        finished_at: None,
        ..row
    };
    run(begun, version, Vec::new())
}

fn waits_for(question: OpenQuestion) -> WaitsFor {
    let kind = WaitKind::from_item(question.item.as_ref());
    let prefix = question.item.as_ref().map_or("msg", ItemBody::prefix);
    WaitsFor {
        key: question.key,
        kind,
        item_id: question.item_id.map(|id| id.wire(prefix)),
        message: question.message,
        schema: question.schema,
        audience: question.audience,
        expires_at: question.expires_at.map(time),
    }
}

pub(super) fn step(row: StoredStep) -> TraceStep {
    TraceStep {
        step: row.step,
        node: row.node,
        visit: row.visit,
        attempt: row.attempt,
        status: row.status,
        started_at: time(row.started_at),
        finished_at: row.finished_at.map(time),
        input_digest: hex::encode(row.input_digest),
        input: Value::Null,
        prompts_read: None,
        result: value(row.result.as_deref()),
        error: row.error.as_deref().and_then(problem),
    }
}

pub(super) fn delivery(row: StoredDelivery) -> DeliveryRecord {
    let status = match (row.next_attempt_at, &row.error) {
        (Some(_), _) => DeliveryState::Queued,
        (None, None) => DeliveryState::Sent,
        (None, Some(_)) => DeliveryState::Failed,
    };
    DeliveryRecord {
        id: row.id.to_string(),
        status,
        attempts: row.attempts,
        created_at: time(row.created_at),
        next_attempt_at: row.next_attempt_at.map(time),
        finished_at: row.finished_at.map(time),
        error: row.error,
    }
}

/// Parses JSON that this service stored itself, at any depth; null if absent.
fn value(text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Null };
    let mut reader = serde_json::Deserializer::from_str(text);
    reader.disable_recursion_limit();
    Value::deserialize(&mut reader).unwrap_or_default()
}

/// A run's error and warning: a succeeded run stores its warning in the error column.
fn problems(status: RunState, stored: Option<&str>) -> (Option<RunProblem>, Option<RunProblem>) {
    let stored = stored.and_then(problem);
    if status == RunState::Succeeded { (None, stored) } else { (stored, None) }
}

fn problem(text: &str) -> Option<RunProblem> {
    serde_json::from_str(text).ok()
}
