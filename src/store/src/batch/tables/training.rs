//! Trainings and evaluations: their starts, calls, results and candidates.

use diesel::sql_types::{BigInt, Bool, Bytea, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

/// Training-specific or evaluation-specific data for a run, in addition to its row in `runs`.
#[derive(Debug, Clone)]
pub struct TrainingRunRow {
    /// The run.
    pub run_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The dataset of its cases.
    pub dataset_id: Uuid,
    /// The version of the dataset, from 1.
    pub dataset_version: i32,
    /// SHA-256 of the case digests in order.
    pub fingerprint: Vec<u8>,
    /// SHA-256 of the evaluators.
    pub judges: Vec<u8>,
    /// The number of cases.
    pub n_cases: i32,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
    /// JSON: the object `training` or `evaluation`, without cases.
    pub request: String,
    /// JSON: decisions made before the first call.
    pub start: String,
    /// The run whose results it evaluates again.
    pub origin_run_id: Option<Uuid>,
}

lane_table! {
    TrainingRuns: "training_runs" from &'a TrainingRunRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        workflow_id: Uuid [SqlUuid] = row.workflow_id,
        dataset_id: Uuid [SqlUuid] = row.dataset_id,
        dataset_version: i32 [Integer] = row.dataset_version,
        fingerprint: &'a [u8] [Bytea] = &row.fingerprint,
        judges: &'a [u8] [Bytea] = &row.judges,
        n_cases: i32 [Integer] = row.n_cases,
        digest: &'a [u8] [Bytea] = &row.digest,
        request: &'a str [Text] = &row.request,
        start: &'a str [Text] = &row.start,
        origin_run_id: Option<Uuid> [Nullable<SqlUuid>] = row.origin_run_id,
    }
}

/// A finished model call.
#[derive(Debug, Clone)]
pub struct TrainingCallRow {
    /// The run.
    pub run_id: Uuid,
    /// UUIDv7 of this row.
    pub id: Uuid,
    /// SHA-256 that identifies the answer for reuse.
    pub key: [u8; 32],
    /// The purpose.
    pub role: &'static str,
    /// `<provider>/<model>`.
    pub model: String,
    /// JSON; `None`: no answer.
    pub reply: Option<String>,
    /// Requests that count toward the budget.
    pub calls: i64,
    /// Input tokens.
    pub input_tokens: i64,
    /// Output tokens.
    pub output_tokens: i64,
    /// Cost in nanodollars.
    pub nanodollars: i64,
    /// Whether the tokens are estimated.
    pub estimated: bool,
    /// Requests sent.
    pub attempts: i32,
    /// Milliseconds from the first request to the end.
    pub duration_ms: i64,
}

lane_table! {
    TrainingCalls: "training_calls" from &'a TrainingCallRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        id: Uuid [SqlUuid] = row.id,
        key: &'a [u8] [Bytea] = &row.key,
        role: &'a str [Text] = row.role,
        model: &'a str [Text] = &row.model,
        reply: Option<&'a str> [Nullable<Text>] = row.reply.as_deref(),
        calls: i64 [BigInt] = row.calls,
        input_tokens: i64 [BigInt] = row.input_tokens,
        output_tokens: i64 [BigInt] = row.output_tokens,
        nanodollars: i64 [BigInt] = row.nanodollars,
        estimated: bool [Bool] = row.estimated,
        attempts: i32 [Integer] = row.attempts,
        duration_ms: i64 [BigInt] = row.duration_ms,
    }
}

/// A case result.
#[derive(Debug, Clone)]
pub struct TrainingCaseRow {
    /// The run.
    pub run_id: Uuid,
    /// The candidate whose prompts were used; 0 is the seed.
    pub candidate: i32,
    /// Its index in the dataset, from 0.
    pub case_index: i32,
    /// The execution number, from 0.
    pub sample: i32,
    /// The phase that executed it.
    pub phase: &'static str,
    /// `train`, `val` or `test`; `None` for an evaluation.
    pub split: Option<&'static str>,
    /// The epoch.
    pub epoch: i32,
    /// Its score; `None` if no scoring evaluator applies.
    pub score: Option<f64>,
    /// Whether every scoring evaluator and every guard passed.
    pub passed: bool,
    /// Answered model calls, with or without a request.
    pub answered: i32,
    /// JSON.
    pub result: String,
    /// JSON: inputs and calls for the trace's steps.
    pub details: Option<String>,
}

lane_table! {
    TrainingCases: "training_cases" from &'a TrainingCaseRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        candidate: i32 [Integer] = row.candidate,
        case_index: i32 [Integer] = row.case_index,
        sample: i32 [Integer] = row.sample,
        phase: &'a str [Text] = row.phase,
        split: Option<&'a str> [Nullable<Text>] = row.split,
        epoch: i32 [Integer] = row.epoch,
        score: Option<f64> [Nullable<Double>] = row.score,
        passed: bool [Bool] = row.passed,
        answered: i32 [Integer] = row.answered,
        result: &'a str [Text] = &row.result,
        details: Option<&'a str> [Nullable<Text>] = row.details.as_deref(),
    }
}

/// A training candidate.
#[derive(Debug, Clone)]
pub struct TrainingCandidateRow {
    /// The run.
    pub run_id: Uuid,
    /// Its number, from 1.
    pub number: i32,
    /// JSON: the record.
    pub record: String,
}

lane_table! {
    TrainingCandidates: "training_candidates" from &'a TrainingCandidateRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        number: i32 [Integer] = row.number,
        record: &'a str [Text] = &row.record,
    }
}

/// A one-time step that a run has completed.
#[derive(Debug, Clone)]
pub struct TrainingMarkRow {
    /// The run.
    pub run_id: Uuid,
    /// The step's name.
    pub mark: String,
    /// JSON: the event, if reports need it.
    pub event: Option<String>,
}

lane_table! {
    TrainingMarks: "training_marks" from &'a TrainingMarkRow as row => {
        run_id: Uuid [SqlUuid] = row.run_id,
        mark: &'a str [Text] = &row.mark,
        event: Option<&'a str> [Nullable<Text>] = row.event.as_deref(),
    }
}

/// A run's progress. If a commit has several, the last value per member applies; `None`: unchanged.
#[derive(Debug, Clone)]
pub struct TrainingStateRow {
    /// The run.
    pub run_id: Uuid,
    /// JSON.
    pub state: Option<String>,
    /// Model requests in flight.
    pub in_flight: Option<i32>,
}

/// A run's last state and in-flight requests in a commit.
pub(in crate::batch) type LatestState<'a> = (Uuid, Option<&'a str>, Option<i32>);

lane_table! {
    TrainingStates: "training_runs" from LatestState<'a> as (run_id, state, in_flight) => {
        run_id: Uuid [SqlUuid] = run_id,
        state: Option<&'a str> [Nullable<Text>] = state,
        in_flight: Option<i32> [Nullable<Integer>] = in_flight,
    }
}
