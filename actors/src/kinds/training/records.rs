//! Converts rows to records.

use serde_json::{Map, Value};
use store::{RunState, StoredCase, StoredCheckpoint, StoredRun, StoredTraining};
use training::Case;
use training::optimize::Phase;
use wire::{
    CaseProblem, CaseRecord, CheckpointRecord, CheckpointSummary, DatasetUsed, RunProblem, TrainingKind,
    TrainingRecord, TrainingState,
};

use super::decided::Decided;
use super::session::read_result;
use super::state::StoredProgress;
use crate::text::{stored_json, timestamp};

fn object(text: &str) -> Map<String, Value> {
    match stored_json(text) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// A checkpoint in the API format.
#[must_use]
pub fn checkpoint_record(row: StoredCheckpoint) -> CheckpointRecord {
    CheckpointRecord {
        id: row.id.to_string(),
        workflow_id: row.workflow_id.to_string(),
        config_version: row.config_version,
        runnable_config: object(&row.runnable_config),
        metrics: object(&row.metrics),
        metadata: object(&row.metadata),
        artifact_url: None,
        is_best: row.is_best,
        created_at: timestamp(row.created_at),
    }
}

/// A checkpoint within a result.
pub(super) fn checkpoint_summary(row: &StoredCheckpoint) -> CheckpointSummary {
    CheckpointSummary {
        id: row.id.to_string(),
        config_version: row.config_version,
        epoch: u32::try_from(row.epoch).unwrap_or_default(),
        score: row.score,
        is_best: row.is_best,
    }
}

/// A training or an evaluation. `version`: its version's number; `best`: the best checkpoint for its cases and
/// evaluators.
pub(super) fn record(
    run: &StoredRun,
    version: Option<i32>,
    training: &StoredTraining,
    best: Option<&StoredCheckpoint>,
) -> TrainingRecord {
    let decided: Option<Decided> = serde_json::from_str(&training.start).ok();
    let state = StoredProgress::stored(training.state.as_deref());
    let output = run.output.as_deref().and_then(|output| stored_json(output).ok()).unwrap_or_default();
    let of_output = |name: &str| output.get(name).and_then(Value::as_str).map(str::to_owned);
    // A score over no cases is meaningless.
    let has_cases = output.get("n_cases").and_then(Value::as_u64) != Some(0);
    let score = output.get("score").and_then(Value::as_f64).filter(|_| has_cases);
    let is_stored = decided.as_ref().is_some_and(|_| training.dataset_id != training.run_id);
    TrainingRecord {
        id: run.id.to_string(),
        kind: TrainingKind::from_name(&run.trigger).unwrap_or(TrainingKind::Training),
        workflow_id: run.workflow_id.to_string(),
        version,
        version_id: run.version_id.to_string(),
        status: status(run, training),
        dataset: DatasetUsed {
            id: match is_stored {
                true => Some(training.dataset_id.to_string()),
                false => decided.as_ref().and_then(|decided| decided.dataset_label.clone()),
            },
            version: is_stored.then_some(training.dataset_version),
            n_cases: u64::try_from(training.n_cases).unwrap_or_default(),
            fingerprint: hex::encode(&training.fingerprint),
        },
        optimizer: decided.map(|decided| decided.optimizer).unwrap_or_default(),
        best_score: score.or(state.progress.best_score),
        progress: state.progress,
        best_checkpoint: best.map(|best| best.id.to_string()),
        stop_reason: of_output("stop_reason"),
        outcome: of_output("outcome"),
        usage: state.usage,
        error: run.error.as_deref().and_then(|error| serde_json::from_str::<RunProblem>(error).ok()),
        origin_run_id: training.origin_run_id.map(|run| run.to_string()),
        created_at: timestamp(run.created_at),
        started_at: run.started_at.map(timestamp),
        finished_at: run.finished_at.map(timestamp),
    }
}

fn status(run: &StoredRun, training: &StoredTraining) -> TrainingState {
    let is_refused = || StoredProgress::stored(training.state.as_deref()).refused_since.is_some();
    match run.status {
        RunState::Queued => TrainingState::Queued,
        RunState::Running => TrainingState::Running,
        RunState::Waiting if training.pause_requested_at.is_some() => TrainingState::Paused,
        RunState::Waiting if is_refused() => TrainingState::Waiting,
        // It is due, but has no slot yet.
        RunState::Waiting => TrainingState::Queued,
        RunState::Succeeded => TrainingState::Succeeded,
        RunState::Failed => TrainingState::Failed,
        RunState::Cancelled => TrainingState::Cancelled,
    }
}

/// A case result.
pub(super) fn case_record(
    row: &StoredCase,
    case: &Case,
    kind: TrainingKind,
    evaluators: &[String],
    with_trace: bool,
) -> Option<CaseRecord> {
    let result = read_result(&row.result)?;
    let number = |number: i32| u32::try_from(number).unwrap_or_default();
    let is_training = kind == TrainingKind::Training;
    let ids = evaluators.iter().map(String::as_str);
    Some(CaseRecord {
        case_index: number(row.case_index),
        case_id: case.id.clone(),
        candidate_id: (is_training && row.phase != Phase::Calibration.as_str())
            .then_some(number(row.candidate)),
        sample: number(row.sample),
        split: row.split.clone(),
        phase: is_training.then(|| row.phase.clone()),
        epoch: is_training.then_some(number(row.epoch)),
        score: row.score,
        passed: row.passed,
        inputs: Value::Object(case.inputs.clone()),
        expected_output: case.expected_output.clone(),
        evaluations: super::cases::evaluations(ids, &result.verdicts, usize::MAX),
        error: result
            .error
            .as_ref()
            .map(|error| CaseProblem { code: error.code.clone(), message: error.message.clone() }),
        duration_ms: result.duration_ns / 1_000_000,
        trace: with_trace
            .then(|| serde_json::to_value(result.trace_with(row.details.as_deref())).unwrap_or_default()),
        output: result.output,
        output_text: result.text,
    })
}
