//! Trainings and evaluations: what starts one, its record, its checkpoints, its candidates and cases.

mod event;
mod report;
mod usage;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use event::*;
pub use report::*;
pub use usage::*;

use crate::{RunProblem, Timestamp};

/// `POST /api/workflows/{ref}/trainer/runs`: a training or an evaluation.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct StartTraining {
    /// A graph, which is stored as a draft; the live version unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_config: Option<Value>,
    /// Inputs under those of each case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Laid over the version's runnable config; prompts one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable_config: Option<Map<String, Value>>,
    /// `{dataset, max_cases?, evaluators, mocks?, effects?, optimizer}`: trains prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Map<String, Value>>,
    /// `{dataset, max_cases?, evaluators, mocks?, effects?, …}`: only evaluates. Either this or `training`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Map<String, Value>>,
    /// A UUIDv7 of the client's for the run: the same request with the same id starts nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// `POST …/trainer/runs/{id}/rescore`: which stored results other evaluators judge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RescoreTraining {
    /// As in an evaluation; none that calls a model.
    pub evaluators: Vec<Value>,
    /// The number of a candidate, `"best"` (default: the returned prompts) or `"seed"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Value>,
}

/// Whether a run trains prompts or only evaluates them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingKind {
    /// It searches for better prompts.
    Training,
    /// It executes and judges the cases once.
    Evaluation,
}

impl TrainingKind {
    /// Its name on the wire, which is the trigger of its runs, too.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Evaluation => "evaluation",
        }
    }

    /// The kind of runs with this trigger. The evaluations of gates have one of their own.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "gate" {
            return Some(Self::Evaluation);
        }
        [Self::Training, Self::Evaluation].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// State of a training or an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingState {
    /// Accepted, not started: too many others execute.
    Queued,
    /// It executes.
    Running,
    /// A client has paused it.
    Paused,
    /// It resumes by itself.
    Waiting,
    /// Ended with a result.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Cancelled; what it had found is kept.
    Cancelled,
}

impl TrainingState {
    /// Every state.
    pub const ALL: [Self; 7] = [
        Self::Queued,
        Self::Running,
        Self::Paused,
        Self::Waiting,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The state of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Its name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Whether nothing follows.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The cases of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetUsed {
    /// The stored dataset, or the label of cases that the request has brought; null without one.
    pub id: Option<String>,
    /// Its version; null if the request has brought the cases.
    pub version: Option<i32>,
    /// How many cases the run has.
    pub n_cases: u64,
    /// SHA-256 over the digests of the cases in their order, hexadecimal: equal if the cases are equal.
    pub fingerprint: String,
}

/// A training or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingRecord {
    /// UUIDv7.
    pub id: String,
    /// What it does.
    pub kind: TrainingKind,
    /// Its workflow.
    pub workflow_id: String,
    /// The number of the version it executes; null for a draft.
    pub version: Option<i32>,
    /// The id of the version or draft.
    pub version_id: String,
    /// Its state.
    pub status: TrainingState,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// Its cases.
    pub dataset: DatasetUsed,
    /// How far it has got.
    pub progress: TrainingProgress,
    /// The best score so far, on the scoring cases.
    pub best_score: Option<f64>,
    /// The checkpoint of the best score among all runs with the same cases and evaluators; null before the first one.
    pub best_checkpoint: Option<String>,
    /// Why the search ended.
    pub stop_reason: Option<String>,
    /// `improved`, `no_significant_gain` or `no_headroom`.
    pub outcome: Option<String>,
    /// What its models have used.
    pub usage: CallUsage,
    /// Why it failed or was cancelled.
    pub error: Option<RunProblem>,
    /// The run whose results it judges again.
    pub origin_run_id: Option<String>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it first started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// `POST …/trainer/runs?dry_run=true`: what a run would do; nothing is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingPlan {
    /// What it would do.
    pub kind: TrainingKind,
    /// The number of the version; null for a draft.
    pub version: Option<i32>,
    /// `{cases: {min, expected, max}, llm_calls: {min, expected, max}, tokens, cost_usd, seconds}`: tokens, dollars and seconds as expected;
    /// `cost_usd` is null if the price of a model is not known.
    pub estimate: Value,
    /// The prompts that would be trained; empty for an evaluation.
    pub trainable_prompts: Vec<String>,
    /// Which cases are for what; null for an evaluation.
    pub splits: Option<SplitRecord>,
    /// The versions of other workflows that it would use.
    pub pins: Value,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// What the author should know.
    pub warnings: Vec<TrainingNotice>,
}

/// Something that the author should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingNotice {
    /// A stable word, such as `prompt_unread`.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A checkpoint: prompts with the metrics of exactly these prompts. Immutable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointRecord {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Counts from 1 within the workflow.
    pub config_version: i64,
    /// The whole config, prompts included, without keys of a single run.
    pub runnable_config: Map<String, Value>,
    /// The mean of each evaluator over the scoring cases.
    pub metrics: Map<String, Value>,
    /// `{epoch, summary, score, run_id, candidate_id, split, n_cases}` and more.
    pub metadata: Map<String, Value>,
    /// Always null: a checkpoint is its config.
    pub artifact_url: Option<String>,
    /// Whether it was the best of all runs with the same cases and evaluators when it was written.
    pub is_best: bool,
    /// When it was written.
    pub created_at: Timestamp,
}

/// A candidate of a training.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateRecord {
    /// Its number; 0 is the seed.
    pub candidate_id: u32,
    /// The candidates that it was made of.
    pub parents: Vec<u32>,
    /// The epoch in which it was compared.
    pub epoch: u32,
    /// The prompts that differ from its parent's.
    pub prompts_changed: Vec<ChangedPrompt>,
    /// Why it was made.
    pub rationale: Option<String>,
    /// `accepted` or `rejected`.
    pub decision: String,
    /// Why it was accepted or rejected.
    pub reason: String,
    /// Cases on which it was compared with its parent.
    pub n: u64,
    /// The mean difference of the scores on these cases.
    pub mean_diff: f64,
    /// When it was compared.
    pub created_at: Timestamp,
}

/// A prompt of a candidate that differs from its parent's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangedPrompt {
    /// Its name.
    pub name: String,
    /// Its new text.
    pub text: String,
    /// Its new demos `{inputs, output}`, if they differ from the parent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub demos: Option<Vec<Value>>,
    /// The changed lines: `-` before those of the parent, `+` before the new ones, a blank before equal ones. Each demo is a line of JSON
    /// after the text, if they differ.
    pub diff: String,
}

/// A case as it was executed with the prompts of a candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseRecord {
    /// Its place in the dataset, from 0.
    pub case_index: u32,
    /// Its id in the dataset.
    pub case_id: String,
    /// Whose prompts; null for an evaluation.
    pub candidate_id: Option<u32>,
    /// The number of the execution, from 0.
    pub sample: u32,
    /// `train`, `val` or `test`; null for an evaluation.
    pub split: Option<String>,
    /// What it was executed for.
    pub phase: Option<String>,
    /// The epoch in which it was executed; null for an evaluation.
    pub epoch: Option<u32>,
    /// Its score; null if no evaluator counts.
    pub score: Option<f64>,
    /// Whether every evaluator that counts has passed.
    pub passed: bool,
    /// What the graph was given.
    pub inputs: Value,
    /// What a good run would return.
    pub expected_output: Value,
    /// The output of the graph.
    pub output: Value,
    /// All its text.
    pub output_text: String,
    /// The verdicts, by the ids of the evaluators.
    pub evaluations: Map<String, Value>,
    /// Why it has no output.
    pub error: Option<CaseProblem>,
    /// Without the time in which calls waited for permits.
    pub duration_ms: u64,
    /// The attempts of nodes, as evaluators receive them; only with `?trace=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Value>,
}

/// Why a case has no output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseProblem {
    /// A stable word: `case_timeout`, `answer_missing`, or the code of a node's error.
    pub code: String,
    /// For people.
    pub message: String,
}
