//! Events of trainings and evaluations, as SSE and the websocket send them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{CallUsage, CandidateRecord, CaseProblem, CheckpointRecord};
use crate::{RunProblem, Timestamp};

/// An event of a training or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingFrame {
    /// What happened: `type` and `payload`.
    #[serde(flatten)]
    pub happened: TrainingEvent,
    /// Always `trainer`.
    pub node: String,
    /// The same as `type`.
    pub event: String,
    /// The run.
    pub run_id: String,
    /// Counts from 1 without gaps.
    pub seq: u64,
    /// When.
    pub at: Timestamp,
}

/// What happens in a training or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", content = "payload", rename_all = "snake_case")]
pub enum TrainingEvent {
    /// It starts; always the first event.
    RunStarted {
        /// Its workflow.
        workflow_id: String,
        /// The number of the version it executes; null for a draft.
        version: Option<i32>,
        /// Always false: a training tells of its resumption by `training_resumed`.
        resumed: bool,
    },
    /// What a training does.
    TrainingStarted(Box<TrainingStarted>),
    /// A case was executed and judged, or its result was used again.
    TrainingProgress(Box<CaseProgress>),
    /// A candidate was compared with its parent.
    TrainingCandidate(Box<CandidateRecord>),
    /// An epoch has ended.
    TrainingEpochComplete(EpochComplete),
    /// A checkpoint was written.
    TrainingCheckpoint(Box<CheckpointRecord>),
    /// The result of a training.
    TrainingResult(Box<TrainingResult>),
    /// A case of an evaluation was executed and judged.
    EvaluationProgress(Box<CaseProgress>),
    /// The result of an evaluation.
    EvaluationResult(EvaluationResult),
    /// Nothing more is executed until it resumes.
    TrainingPaused {
        /// `client`, `shutdown` or `rate_limited`.
        reason: String,
    },
    /// It executes again.
    TrainingResumed {
        /// `client`, `restart` or `takeover`.
        reason: String,
    },
    /// Something that the author should know.
    TrainingWarning {
        /// A stable word, such as `prompt_unread`.
        code: String,
        /// For people.
        message: String,
    },
    /// It has ended with a result; nothing follows.
    RunCompleted {
        /// The same as the payload of the result.
        output: Value,
    },
    /// The service itself has failed; nothing follows.
    RunFailed {
        /// Why.
        error: RunProblem,
    },
    /// It was cancelled; nothing follows.
    RunCancelled {
        /// Why.
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

/// What a training does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingStarted {
    /// The optimizer with its defaults filled.
    pub optimizer: Value,
    /// Which cases are for what.
    pub splits: SplitRecord,
    /// SHA-256 over the digests of the cases in their order, hexadecimal.
    pub dataset_fingerprint: String,
    /// The prompts that are trained.
    pub trainable_prompts: Vec<String>,
    /// The versions of other workflows that it uses: `[{workflow, asked, version, version_id}]`.
    pub pins: Value,
    /// The number of the version it executes; null for a draft.
    pub version: Option<i32>,
    /// `{cases: {min, expected, max}, llm_calls: {min, expected, max}, tokens, cost_usd, seconds}`: tokens, dollars and seconds as expected;
    /// `cost_usd` is null if the price of a model is not known.
    pub estimate: Value,
    /// `resume` of the request: where the first prompts come from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumed_from: Option<Value>,
}

/// Which cases are for what, by their places in the dataset.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SplitRecord {
    /// What proposals are made from.
    pub train: Vec<usize>,
    /// What decides between candidates.
    pub val: Vec<usize>,
    /// What is used once, at the end.
    pub test: Vec<usize>,
    /// `split` or `kfold`: how the test score is estimated; null if the request asks for none.
    pub test_estimate: Option<String>,
}

/// A case that was executed and judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseProgress {
    /// Its place in the dataset, from 0.
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
    /// Whose prompts: 0 is the seed. Not in evaluations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate_id: Option<u32>,
    /// The number of the execution of this case, from 0.
    pub sample: u32,
    /// What the graph was given.
    pub inputs: Value,
    /// Its output; null if it has none, or if it is larger than 64 KiB: the case's record has it.
    pub output: Value,
    /// The verdicts, by the ids of the evaluators.
    pub evaluations: Map<String, Value>,
    /// Of the case.
    pub metadata: Value,
    /// Without the time in which calls waited for permits.
    pub duration_ms: u64,
    /// Why it has no output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<CaseProblem>,
    /// Whether an earlier result was used again.
    pub cached: bool,
    /// How far the run has got.
    pub progress: TrainingProgress,
}

/// The verdict of an evaluator, as events show it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluationVerdict {
    /// From 0 to 1.
    pub score: f64,
    /// Whether it is good enough.
    pub passed: bool,
    /// Why.
    pub reason: Option<String>,
    /// Whether the case does not count for the evaluator.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip: bool,
    /// Why the evaluator itself failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// How far a run has got.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingProgress {
    /// Cases that were executed.
    pub done: u64,
    /// Cases that the run expects to execute.
    pub planned: u64,
    /// The mean score of the cases of the current phase and candidate so far.
    pub running_mean: Option<f64>,
    /// The best score on the scoring cases so far.
    pub best_score: Option<f64>,
    /// Cases in a second of active time.
    pub cases_per_s: Option<f64>,
    /// Seconds until the expected end, by the cases so far.
    pub eta_s: Option<f64>,
    /// Requests to models so far.
    pub llm_calls: u64,
    /// US dollars so far.
    pub cost: f64,
    /// What is left of the budget; null without a budget.
    pub budget_left: Option<BudgetLeft>,
}

/// What is left of a budget; null for what has no limit.
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
    /// The mean of each evaluator over the scoring cases, with the best prompts so far.
    pub summary: Map<String, Value>,
    /// The score of the best prompts so far.
    pub score: f64,
    /// The best score so far.
    pub best_score: f64,
    /// The share of scoring cases that pass.
    pub pass_rate: f64,
    /// What models have used so far.
    pub usage: CallUsage,
    /// Seconds of active time so far.
    pub wall_s: f64,
}

/// The result of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingResult {
    /// The mean of each evaluator over the scoring cases, with the returned prompts.
    pub summary: Map<String, Value>,
    /// The checkpoints of the run, in their order: `[{id, config_version, epoch, score, is_best}]`.
    pub checkpoints: Vec<CheckpointSummary>,
    /// The best checkpoint among all runs with the same cases and evaluators.
    pub best_checkpoint: Option<CheckpointSummary>,
    /// The returned prompts: text by name.
    pub prompts: Map<String, Value>,
    /// The demos `{inputs, output}` of the returned prompts with `demos_trainable`, by name; a prompt without demos has an empty list.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub demos: Map<String, Value>,
    /// Why the search ended.
    pub stop_reason: String,
    /// `improved`, `no_significant_gain` or `no_headroom`.
    pub outcome: String,
    /// The seed against the best candidate; null if the run was cancelled before it was known.
    pub seed_vs_best: Option<SeedVsBest>,
    /// What models have used.
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
    /// The epoch in which it was written.
    pub epoch: u32,
    /// The score of its prompts on the scoring cases.
    pub score: f64,
    /// Whether it was the best when it was written.
    pub is_best: bool,
}

/// The seed against the best candidate.
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
    /// The difference in standard errors; over 1.9 it counts as more than chance.
    pub z: f64,
    /// Cases that were compared.
    pub n: u64,
}

/// A score of the seed and of the best candidate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ScorePair {
    /// Of the seed.
    pub seed: f64,
    /// Of the best candidate.
    pub best: f64,
}

/// The result of an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EvaluationResult {
    /// The mean of each evaluator.
    pub summary: Map<String, Value>,
    /// The mean score of the cases.
    pub score: f64,
    /// The share of cases that pass.
    pub pass_rate: f64,
    /// What models have used.
    pub usage: CallUsage,
    /// How many cases there are.
    pub n_cases: u64,
    /// Why not every case was executed: `budget` or `max_seconds`; null if all were.
    pub stop_reason: Option<String>,
}
