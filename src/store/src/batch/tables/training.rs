//! Trainings and evaluations: their starts, calls, results and candidates.

use diesel::sql_types::{BigInt, Bool, Bytea, Double, Integer, Nullable, Text, Uuid as SqlUuid};
use uuid::Uuid;

/// What a training or an evaluation has beside its row in `runs`.
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
    /// SHA-256 of the digests of the cases in their order.
    pub fingerprint: Vec<u8>,
    /// SHA-256 of the evaluators.
    pub judges: Vec<u8>,
    /// How many cases it has.
    pub n_cases: i32,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
    /// JSON: the object `training` or `evaluation`, without cases.
    pub request: String,
    /// JSON: what was decided before the first call.
    pub start: String,
    /// The run whose results it judges again.
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

/// A call of a model that has ended.
#[derive(Debug, Clone)]
pub struct TrainingCallRow {
    /// The run.
    pub run_id: Uuid,
    /// UUIDv7 of this row.
    pub id: Uuid,
    /// SHA-256 by which the answer is found again.
    pub key: [u8; 32],
    /// What it was made for.
    pub role: &'static str,
    /// `<provider>/<model>`.
    pub model: String,
    /// JSON; `None`: it was not answered.
    pub reply: Option<String>,
    /// Requests that count in the budget.
    pub calls: i64,
    /// Tokens that the model has read.
    pub input_tokens: i64,
    /// Tokens that it has written.
    pub output_tokens: i64,
    /// Money, in nanodollars.
    pub nanodollars: i64,
    /// Whether the tokens are estimated.
    pub estimated: bool,
    /// Requests that were sent.
    pub attempts: i32,
    /// From the first request to the end.
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

/// The result of a case.
#[derive(Debug, Clone)]
pub struct TrainingCaseRow {
    /// The run.
    pub run_id: Uuid,
    /// Whose prompts; 0 is the seed.
    pub candidate: i32,
    /// Its place in the dataset, from 0.
    pub case_index: i32,
    /// The number of the execution, from 0.
    pub sample: i32,
    /// What it was executed for.
    pub phase: &'static str,
    /// `train`, `val` or `test`; `None` for an evaluation.
    pub split: Option<&'static str>,
    /// The epoch.
    pub epoch: i32,
    /// Its score; `None` if no evaluator counts.
    pub score: Option<f64>,
    /// Whether every evaluator that counts has passed.
    pub passed: bool,
    /// Calls of models that were answered, with or without a request.
    pub answered: i32,
    /// JSON.
    pub result: String,
    /// JSON: inputs and calls of the trace's steps.
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

/// A candidate of a training.
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

/// What a run has done once.
#[derive(Debug, Clone)]
pub struct TrainingMarkRow {
    /// The run.
    pub run_id: Uuid,
    /// What it has done.
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

/// How far a run has got. Of several in a commit the last value of each member counts; `None`: it stays.
#[derive(Debug, Clone)]
pub struct TrainingStateRow {
    /// The run.
    pub run_id: Uuid,
    /// JSON.
    pub state: Option<String>,
    /// Requests to models that are in flight.
    pub in_flight: Option<i32>,
}

/// The last state and number of requests of a run in a commit.
pub(in crate::batch) type LatestState<'a> = (Uuid, Option<&'a str>, Option<i32>);

lane_table! {
    TrainingStates: "training_runs" from LatestState<'a> as (run_id, state, in_flight) => {
        run_id: Uuid [SqlUuid] = run_id,
        state: Option<&'a str> [Nullable<Text>] = state,
        in_flight: Option<i32> [Nullable<Integer>] = in_flight,
    }
}
