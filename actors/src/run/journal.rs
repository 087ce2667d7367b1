//! Converts between journal entries and rows.

use std::time::Duration;

use engine::outbox::Delivery;
use engine::ports::{StepOutcome, StepRecord};
use engine::{NodeError, RecordedStep};
use serde_json::{Value, json};
use store::batch::{OutboxRow, QuestionRow, StepRow};
use store::{Store, StoreError, StoredStep};
use uuid::Uuid;
use wire::ErrorCode;

use crate::text::{json as json_of, stored_json};

/// Reads the journal from a run's earlier life.
pub(crate) async fn read_journal(store: &Store, run: Uuid) -> Result<Vec<RecordedStep>, StoreError> {
    Ok(store.journal(run).await?.into_iter().filter_map(recorded).collect())
}

fn recorded(row: StoredStep) -> Option<RecordedStep> {
    let read = |text: Option<String>| text.and_then(|text| stored_json(&text).ok());
    Some(RecordedStep {
        visit: u32::try_from(row.visit).ok()?,
        attempt: u32::try_from(row.attempt).ok()?,
        node: row.node,
        input_digest: row.input_digest.try_into().unwrap_or_default(),
        result: read(row.result),
        error: row.error.as_deref().and_then(node_error),
        note: read(row.note),
        started_at: row.started_at,
        finished_at: row.finished_at,
    })
}

pub(super) fn step_row(run: Uuid, record: StepRecord) -> StepRow {
    let (status, result, error, finished_at) = match record.outcome {
        StepOutcome::Started => ("started", None, None, None),
        StepOutcome::Succeeded { result, finished_at } => {
            ("succeeded", Some(result), None, Some(finished_at))
        }
        StepOutcome::Failed { error, finished_at } => {
            ("failed", None, Some(stored_error(&error).to_string()), Some(finished_at))
        }
    };
    StepRow {
        run_id: run,
        node: record.node,
        visit: number(record.visit),
        attempt: number(record.attempt),
        step: number(record.step),
        begun: record.begun,
        status,
        input_digest: record.input_digest.to_vec(),
        result,
        error,
        note: record.note.map(|note| note.to_string()),
        started_at: record.started_at,
        finished_at,
    }
}

/// The question row, if the step asks a question.
pub(super) fn question_row(run: Uuid, record: &StepRecord) -> Option<QuestionRow> {
    let question = record.question.as_ref()?;
    Some(QuestionRow {
        run_id: run,
        node: record.node.clone(),
        visit: number(record.visit),
        attempt: number(record.attempt),
        key: storable(&question.key),
        message: question.message.as_deref().map(storable),
        schema: question.schema.as_ref().map(Value::to_string),
        audience: json!(question.audience),
        asked_at: record.started_at,
        expires_at: question.expires_at,
        item: question.item.as_ref().map(json_of),
        continues_without: question.continues_without,
    })
}

/// The text without NUL, which the database cannot store.
fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

pub(super) fn number(n: u32) -> i32 {
    i32::try_from(n).unwrap_or(i32::MAX)
}

/// The outbox row, if the step sent something.
pub(super) fn outbox_row(run: Uuid, record: &StepRecord) -> Option<OutboxRow> {
    let Delivery { id, request } = record.delivery.as_ref()?;
    let created_at = match &record.outcome {
        StepOutcome::Succeeded { finished_at, .. } => *finished_at,
        StepOutcome::Started | StepOutcome::Failed { .. } => return None,
    };
    Some(OutboxRow { id: *id, run_id: run, request: request.to_string(), created_at })
}

fn stored_error(error: &NodeError) -> Value {
    let mut stored = json!({
        "code": error.code.as_str(), "message": error.message, "retryable": error.retryable,
    });
    let others = [
        ("retry_after_seconds", error.retry_after.map(|wait| json!(wait.as_secs_f64()))),
        ("node", error.node.as_ref().map(|node| json!(node))),
        ("usage", error.usage.as_deref().cloned()),
    ];
    if let Some(members) = stored.as_object_mut() {
        members.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
    }
    stored
}

fn node_error(text: &str) -> Option<NodeError> {
    let stored = stored_json(text).ok()?;
    let code = stored.get("code").and_then(Value::as_str).and_then(ErrorCode::from_code);
    let wait = stored.get("retry_after_seconds").and_then(Value::as_f64);
    Some(NodeError {
        code: code.unwrap_or(ErrorCode::NodeFailed),
        message: stored.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
        retryable: stored.get("retryable").and_then(Value::as_bool).unwrap_or(false),
        retry_after: wait.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        node: stored.get("node").and_then(Value::as_str).map(str::to_owned),
        usage: stored.get("usage").cloned().map(Box::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_reads_as_it_was_written() {
        let error = NodeError {
            code: ErrorCode::ModelRateLimited,
            message: "slow down".to_owned(),
            retryable: true,
            retry_after: Some(Duration::from_millis(1_500)),
            node: Some("help[0]".to_owned()),
            usage: Some(Box::new(json!({"calls": 1}))),
        };
        let plain = NodeError::new(ErrorCode::ModelRateLimited, "slow down");
        for error in [error, plain] {
            assert_eq!(node_error(&stored_error(&error).to_string()), Some(error));
        }
        // The format in rows by older versions.
        let old = node_error(r#"{"code":"node.timeout","message":"late"}"#).unwrap();
        assert_eq!(old, NodeError::new(ErrorCode::NodeTimeout, "late"));
    }
}
