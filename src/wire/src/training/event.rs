//! Training and evaluation events, as sent over SSE and the websocket.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallUsage, CandidateRecord, CaseProblem, CheckpointRecord};
use crate::{RunProblem, Timestamp};

/// A training or evaluation event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingFrame {
    /// The event: `type` and `payload`.
    #[serde(flatten)]
    pub happened: TrainingEvent,
    /// Always `trainer`.
    pub node: String,
    /// The same as `type`.
    pub event: String,
    /// The run.
    pub run_id: String,
    /// Counter from 1 without gaps.
    pub seq: u64,
    /// Event time.
    pub at: Timestamp,
}

/// An event in a training or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum TrainingEvent {
    /// It starts; always the first event.
    RunStarted {
        /// Its workflow.
        workflow_id: String,
        /// Its version number; null for a draft.
        version: Option<i32>,
        /// Always false: a training reports its resumption with `training_resumed`.
        resumed: bool,
    },
    /// A training's plan.
    TrainingStarted(Box<TrainingStarted>),
    /// A case was executed and judged, or its earlier result was reused.
    TrainingProgress(Box<CaseProgress>),
    /// A candidate was compared with its parent.
    TrainingCandidate(Box<CandidateRecord>),
    /// An epoch has ended.
    TrainingEpochComplete(EpochComplete),
    /// A checkpoint was written.
    TrainingCheckpoint(Box<CheckpointRecord>),
    /// A training's result.
    TrainingResult(Box<TrainingResult>),
    /// An evaluation's case was executed and judged.
    EvaluationProgress(Box<CaseProgress>),
    /// An evaluation's result.
    EvaluationResult(EvaluationResult),
    /// Execution is paused.
    TrainingPaused {
        /// `client`, `shutdown` or `rate_limited`.
        reason: String,
    },
    /// Execution continues.
    TrainingResumed {
        /// `client`, `restart` or `takeover`.
        reason: String,
    },
    /// A warning for the author.
    TrainingWarning {
        /// A stable identifier, such as `prompt_unread`.
        code: String,
        /// A message for people.
        message: String,
    },
    /// It has ended with a result; nothing follows.
    RunCompleted {
        /// The same as the result's payload.
        output: Value,
    },
    /// The service itself has failed; nothing follows.
    RunFailed {
        /// The reason.
        error: RunProblem,
    },
    /// It was cancelled; nothing follows.
    RunCancelled {
        /// The reason.
        error: RunProblem,
    },
}

impl TrainingEvent {
    /// Its `type`.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::TrainingStarted(_) => "training_started",
            Self::TrainingProgress(_) => "training_progress",
            Self::TrainingCandidate(_) => "training_candidate",
            Self::TrainingEpochComplete(_) => "training_epoch_complete",
            Self::TrainingCheckpoint(_) => "training_checkpoint",
            Self::TrainingResult(_) => "training_result",
            Self::EvaluationProgress(_) => "evaluation_progress",
            Self::EvaluationResult(_) => "evaluation_result",
            Self::TrainingPaused { .. } => "training_paused",
            Self::TrainingResumed { .. } => "training_resumed",
            Self::TrainingWarning { .. } => "training_warning",
            Self::RunCompleted { .. } => "run_completed",
            Self::RunFailed { .. } => "run_failed",
            Self::RunCancelled { .. } => "run_cancelled",
        }
    }
}

/// A training's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingStarted {
    /// The optimizer with its defaults filled.
    pub optimizer: Value,
    /// Each case's purpose.
    pub splits: SplitRecord,
    /// SHA-256 over the case digests in order, hexadecimal.
    pub dataset_fingerprint: String,
    /// The prompts to train.
    pub trainable_prompts: Vec<String>,
    /// Other workflows' versions that it uses: `[{workflow, asked, version, version_id}]`.
    pub pins: Value,
    /// Its version number; null for a draft.
    pub version: Option<i32>,
    /// `{cases: {min, expected, max}, llm_calls: {min, expected, max}, tokens, cost_usd, seconds}`: tokens, dollars and
    /// seconds are expected values; `cost_usd` is null if a model's price is unknown.
    pub estimate: Value,
    /// The request's `resume`: the origin of the first prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<Value>,
}

/// Each case's purpose, by index in the dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitRecord {
    /// Cases for making proposals.
    pub train: Vec<usize>,
    /// Cases for deciding between candidates.
    pub val: Vec<usize>,
    /// Cases that are used once, at the end.
    pub test: Vec<usize>,
    /// `split` or `kfold`, the method of the test estimate; null if the request needs none.
    pub test_estimate: Option<String>,
}

/// An executed and judged case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseProgress {
    /// Its index in the dataset, from 0.
    pub case_index: u32,
    /// Its id in the dataset.
    pub case_id: String,
    /// The epoch, from 1; 0 before the first one. Not in evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u32>,
    /// `train`, `val` or `test`. Not in evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// `headroom`, `train`, `race`, `val`, `final`, `test` or `calibration`. Not in evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The candidate whose prompts were used; 0 is the seed. Not in evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_id: Option<u32>,
    /// The number of this execution of the case, from 0.
    pub sample: u32,
    /// The graph's inputs.
    pub inputs: Value,
    /// Its output; null if it has none, or if it exceeds 64 KiB: the case's record has it.
    pub output: Value,
    /// The verdicts, by evaluator id.
    pub evaluations: Map<String, Value>,
    /// The case's metadata.
    pub metadata: Value,
    /// Duration without the time in which calls waited for permits.
    pub duration_ms: u64,
    /// Reason for a missing output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CaseProblem>,
    /// Whether an earlier result was reused.
    pub cached: bool,
    /// The run's progress.
    pub progress: TrainingProgress,
}

/// An evaluator's verdict in an event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluationVerdict {
    /// From 0 to 1.
    pub score: f64,
    /// Whether the score is good enough.
    pub passed: bool,
    /// The reason.
    pub reason: Option<String>,
    /// Whether the evaluator ignores this case.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// Reason for the evaluator's own failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A run's progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingProgress {
    /// Executed cases.
    pub done: u64,
    /// Cases that the run expects to execute.
    pub planned: u64,
    /// The mean score of the current phase and candidate so far.
    pub running_mean: Option<f64>,
    /// The best score on the scoring cases so far.
    pub best_score: Option<f64>,
    /// Cases per second of active time.
    pub cases_per_s: Option<f64>,
    /// Estimated seconds until the end, based on the cases so far.
    pub eta_s: Option<f64>,
    /// Model requests so far.
    pub llm_calls: u64,
    /// US dollars so far.
    pub cost: f64,
    /// The remaining budget; null without a budget.
    pub budget_left: Option<BudgetLeft>,
}

/// The remaining budget; null for an unlimited part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BudgetLeft {
    /// Requests.
    pub llm_calls: Option<u64>,
    /// Tokens.
    pub tokens: Option<u64>,
    /// US dollars.
    pub cost: Option<f64>,
    /// Seconds of active time.
    pub seconds: Option<f64>,
}

/// An epoch has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EpochComplete {
    /// Its number, from 1.
    pub epoch: u32,
    /// Each evaluator's mean over the scoring cases, with the best prompts so far.
    pub summary: Map<String, Value>,
    /// The best prompts' score so far.
    pub score: f64,
    /// The best score so far.
    pub best_score: f64,
    /// The share of scoring cases that pass.
    pub pass_rate: f64,
    /// Model usage so far.
    pub usage: CallUsage,
    /// Seconds of active time so far.
    pub wall_s: f64,
}

/// A training's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingResult {
    /// Each evaluator's mean over the scoring cases, with the returned prompts.
    pub summary: Map<String, Value>,
    /// The run's checkpoints, in order: `[{id, config_version, epoch, score, is_best}]`.
    pub checkpoints: Vec<CheckpointSummary>,
    /// The best checkpoint among all runs with the same cases and evaluators.
    pub best_checkpoint: Option<CheckpointSummary>,
    /// The returned prompts: text by name.
    pub prompts: Map<String, Value>,
    /// The demos `{inputs, output}` of the returned prompts with `demos_trainable`, by name; a prompt without demos has
    /// an empty list.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub demos: Map<String, Value>,
    /// The reason why the search ended.
    pub stop_reason: String,
    /// `improved`, `no_significant_gain` or `no_headroom`.
    pub outcome: String,
    /// The seed compared with the best candidate; null if the run was cancelled before it was known.
    pub seed_vs_best: Option<SeedVsBest>,
    /// Model usage.
    pub usage: CallUsage,
}

/// A checkpoint in a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointSummary {
    /// The checkpoint.
    pub id: String,
    /// Its number within the workflow.
    pub config_version: i64,
    /// The epoch that wrote it.
    pub epoch: u32,
    /// The score of its prompts on the scoring cases.
    pub score: f64,
    /// Whether it was the best when it was written.
    pub is_best: bool,
}

/// The seed compared with the best candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SeedVsBest {
    /// On the scoring cases.
    pub val: ScorePair,
    /// On the test cases; null without a test.
    pub test: Option<ScorePair>,
    /// The mean difference on the scoring cases.
    pub diff: f64,
    /// Its 95 % interval.
    pub ci95: [f64; 2],
    /// The difference in standard errors; above 1.9 it counts as more than chance.
    pub z: f64,
    /// Compared cases.
    pub n: u64,
}

/// The scores for the seed and for the best candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScorePair {
    /// The seed's score.
    pub seed: f64,
    /// The best candidate's score.
    pub best: f64,
}

/// An evaluation's result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluationResult {
    /// Each evaluator's mean.
    pub summary: Map<String, Value>,
    /// The mean case score.
    pub score: f64,
    /// The share of cases that pass.
    pub pass_rate: f64,
    /// Model usage.
    pub usage: CallUsage,
    /// Number of cases.
    pub n_cases: u64,
    /// The reason for an early end: `budget` or `max_seconds`; null if every case was executed.
    pub stop_reason: Option<String>,
}
