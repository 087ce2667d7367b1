//! Trainings and evaluations: requests, records, checkpoints, candidates and cases.

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
    /// A graph, stored as a draft (default: the live version).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph_config: Option<Value>,
    /// Default inputs, overridden by each case's inputs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// Overlay for the version's runnable config; prompts are merged one by one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runnable_config: Option<Map<String, Value>>,
    /// `{dataset, max_cases?, evaluators, mocks?, effects?, optimizer}`: trains prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<Map<String, Value>>,
    /// `{dataset, max_cases?, evaluators, mocks?, effects?, …}`: only evaluates. Either this or `training`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation: Option<Map<String, Value>>,
    /// The run's id, a UUIDv7 that the client chooses: the same request with the same id starts nothing new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<String>,
}

/// `POST …/trainer/runs/{id}/rescore`: the stored results that other evaluators judge.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RescoreTraining {
    /// Evaluators, as in an evaluation; none may call a model.
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
    /// Its name on the wire, which is also the trigger of its runs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Training => "training",
            Self::Evaluation => "evaluation",
        }
    }

    /// The kind of runs with this trigger. A gate's evaluation has a separate trigger.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        if name == "gate" {
            return Some(Self::Evaluation);
        }
        [Self::Training, Self::Evaluation].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// The state of a training or an evaluation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingState {
    /// Accepted, not started: too many others are executing.
    Queued,
    /// Executing.
    Running,
    /// Paused by a client.
    Paused,
    /// Waiting; resumes automatically.
    Waiting,
    /// Ended with a result.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Cancelled; earlier results are kept.
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

    /// Parses a state name.
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

    /// Whether no other state can follow.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// A run's cases.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatasetUsed {
    /// The stored dataset, or the label of cases in the request; null without one.
    pub id: Option<String>,
    /// Its version; null for cases in the request.
    pub version: Option<i32>,
    /// Number of cases in the run.
    pub n_cases: u64,
    /// SHA-256 over the case digests in order, hexadecimal: equal for equal cases.
    pub fingerprint: String,
}

/// A training or an evaluation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingRecord {
    /// UUIDv7.
    pub id: String,
    /// Its kind.
    pub kind: TrainingKind,
    /// Its workflow.
    pub workflow_id: String,
    /// Its version number; null for a draft.
    pub version: Option<i32>,
    /// The id of its version or draft.
    pub version_id: String,
    /// Its state.
    pub status: TrainingState,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// Its cases.
    pub dataset: DatasetUsed,
    /// Its progress.
    pub progress: TrainingProgress,
    /// The best score so far, on the scoring cases.
    pub best_score: Option<f64>,
    /// The checkpoint with the best score among all runs with the same cases and evaluators; null before the first one.
    pub best_checkpoint: Option<String>,
    /// The reason why the search ended.
    pub stop_reason: Option<String>,
    /// `improved`, `no_significant_gain` or `no_headroom`.
    pub outcome: Option<String>,
    /// Model usage.
    pub usage: CallUsage,
    /// Reason for a failure or cancellation.
    pub error: Option<RunProblem>,
    /// The run whose results it judges again.
    pub origin_run_id: Option<String>,
    /// Acceptance time.
    pub created_at: Timestamp,
    /// First start time.
    pub started_at: Option<Timestamp>,
    /// End time.
    pub finished_at: Option<Timestamp>,
}

/// `POST …/trainer/runs?dry_run=true`: a run's plan; nothing is started.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingPlan {
    /// The run's kind.
    pub kind: TrainingKind,
    /// The version's number; null for a draft.
    pub version: Option<i32>,
    /// `{cases: {min, expected, max}, llm_calls: {min, expected, max}, tokens, cost_usd, seconds}`: tokens, dollars and
    /// seconds are expected values; `cost_usd` is null if a model's price is unknown.
    pub estimate: Value,
    /// The prompts that would be trained; empty for an evaluation.
    pub trainable_prompts: Vec<String>,
    /// Each case's purpose; null for an evaluation.
    pub splits: Option<SplitRecord>,
    /// Other workflows' versions that it would use.
    pub pins: Value,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// Warnings for the author.
    pub warnings: Vec<TrainingNotice>,
}

/// A warning for the author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingNotice {
    /// A stable identifier, such as `prompt_unread`.
    pub code: String,
    /// For people.
    pub message: String,
}

/// A checkpoint: prompts with their own metrics. Immutable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CheckpointRecord {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Counter from 1 within the workflow.
    pub config_version: i64,
    /// The whole config, prompts included, without keys for a single run.
    pub runnable_config: Map<String, Value>,
    /// Each evaluator's mean over the scoring cases.
    pub metrics: Map<String, Value>,
    /// `{epoch, summary, score, run_id, candidate_id, split, n_cases}` and more.
    pub metadata: Map<String, Value>,
    /// Always null: a checkpoint is its config.
    pub artifact_url: Option<String>,
    /// Whether it was the best of all runs with the same cases and evaluators when it was written.
    pub is_best: bool,
    /// Creation time.
    pub created_at: Timestamp,
}

/// A training candidate.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateRecord {
    /// Its number; 0 is the seed.
    pub candidate_id: u32,
    /// The candidates from which it was made.
    pub parents: Vec<u32>,
    /// The epoch in which it was compared.
    pub epoch: u32,
    /// The prompts that differ from its parent's.
    pub prompts_changed: Vec<ChangedPrompt>,
    /// The reason for making it.
    pub rationale: Option<String>,
    /// `accepted` or `rejected`.
    pub decision: String,
    /// The reason for the decision.
    pub reason: String,
    /// Cases on which it was compared with its parent.
    pub n: u64,
    /// The mean score difference on these cases.
    pub mean_diff: f64,
    /// Comparison time.
    pub created_at: Timestamp,
}

/// A candidate's prompt that differs from its parent's.
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
    /// The changed lines: `-` before the parent's, `+` before the new ones, a blank before equal ones. If the demos
    /// differ, each demo follows the text as a line of JSON.
    pub diff: String,
}

/// A case executed with a candidate's prompts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseRecord {
    /// Its index in the dataset, from 0.
    pub case_index: u32,
    /// Its id in the dataset.
    pub case_id: String,
    /// The candidate whose prompts were used; null for an evaluation.
    pub candidate_id: Option<u32>,
    /// The execution's number, from 0.
    pub sample: u32,
    /// `train`, `val` or `test`; null for an evaluation.
    pub split: Option<String>,
    /// The execution's purpose.
    pub phase: Option<String>,
    /// The epoch in which it was executed; null for an evaluation.
    pub epoch: Option<u32>,
    /// Its score; null if no evaluator counts.
    pub score: Option<f64>,
    /// Whether every counting evaluator has passed.
    pub passed: bool,
    /// The graph's inputs.
    pub inputs: Value,
    /// The expected output.
    pub expected_output: Value,
    /// The graph's output.
    pub output: Value,
    /// Its whole text.
    pub output_text: String,
    /// The verdicts, by evaluator id.
    pub evaluations: Map<String, Value>,
    /// Reason for a missing output.
    pub error: Option<CaseProblem>,
    /// Duration without the time in which calls waited for permits.
    pub duration_ms: u64,
    /// The node attempts, as evaluators receive them; only with `?trace=true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Value>,
}

/// Reason for a missing output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseProblem {
    /// A stable identifier: `case_timeout`, `answer_missing`, or the code of a node's error.
    pub code: String,
    /// For people.
    pub message: String,
}
