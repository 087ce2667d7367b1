//! The report of a training or an evaluation.

use serde::Serialize;
use serde_json::{Map, Value};

use super::{
    CallUsage, CheckpointSummary, DatasetUsed, SeedVsBest, TrainingKind, TrainingNotice, TrainingState,
};
use crate::{RunProblem, Timestamp};

/// What a training has found, at its end or so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingReport {
    /// The id of the run.
    pub run: String,
    /// `training` or `evaluation`.
    pub kind: TrainingKind,
    /// The id of the workflow.
    pub workflow: String,
    /// Its name now.
    pub workflow_name: Option<String>,
    /// The number of the version that was executed; null for a draft.
    pub version: Option<i32>,
    /// State of the run.
    pub status: TrainingState,
    /// One or a few sentences: whether anything got better.
    pub verdict: String,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// The cases.
    pub dataset: DatasetUsed,
    /// The name of the stored dataset; null if the request has brought the cases.
    pub dataset_name: Option<String>,
    /// How many cases were for what; null before the start.
    pub splits: Option<CaseCounts>,
    /// `split` or `kfold`: how the test score was estimated; null if the request asked for none.
    pub test_estimate: Option<String>,
    /// `improved`, `no_significant_gain` or `no_headroom`; null before the result.
    pub outcome: Option<String>,
    /// Why the search ended; null before the result.
    pub stop_reason: Option<String>,
    /// The score of the returned prompts, or of an evaluation, on the scoring cases; null before the first one.
    pub score: Option<f64>,
    /// The share of cases of an evaluation that pass; null for a training.
    pub pass_rate: Option<f64>,
    /// The mean of each evaluator for the returned prompts, or of an evaluation.
    pub summary: Map<String, Value>,
    /// The seed against the best candidate; null before the result, and if the run was cancelled before it was known.
    pub seed_vs_best: Option<SeedVsBest>,
    /// The score after each epoch, in the order of the epochs.
    pub curve: Vec<CurvePoint>,
    /// How many results of an evaluation have a score in each tenth from 0 to 1; empty for a training.
    pub distribution: Vec<u64>,
    /// The prompts by name.
    pub prompts: Vec<PromptReport>,
    /// How many candidates were compared, besides the seed.
    pub candidates: CandidateCounts,
    /// The checkpoints in their order.
    pub checkpoints: Vec<CheckpointSummary>,
    /// What models have used.
    pub usage: CallUsage,
    /// What the author should know.
    pub warnings: Vec<TrainingNotice>,
    /// How far each judge agrees with people; empty if none was calibrated.
    pub judges: Vec<JudgeCalibration>,
    /// Why the run failed or was cancelled.
    pub error: Option<RunProblem>,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it first started.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// How many cases were for what. A case can count in two of them: without a validation split, training and scoring cases are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseCounts {
    /// Cases that proposals were made from.
    pub train: usize,
    /// Cases that decided between candidates.
    pub val: usize,
    /// Cases that were used once, at the end.
    pub test: usize,
    /// Cases that were both for training and for scoring.
    pub train_and_val: usize,
}

/// The score after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// The number of the epoch, from 1.
    pub epoch: u32,
    /// The score of the best prompts after the epoch.
    pub score: f64,
    /// The best score until then.
    pub best_score: f64,
}

/// A prompt of the seed against the returned one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptReport {
    /// Its name.
    pub name: String,
    /// Its text before the training; null if the seed did not have it.
    pub seed: Option<String>,
    /// Its returned text; null if none was returned, or not yet.
    pub best: Option<String>,
    /// The lines of both texts, `-` before those of the seed, `+` before the returned ones; null if nothing was returned or both are equal.
    pub diff: Option<String>,
    /// Why the returned text is as it is, in the words of the model that wrote it; null if it has not said it.
    pub rationale: Option<String>,
}

/// How many candidates were compared with their parents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateCounts {
    /// They were better.
    pub accepted: usize,
    /// They were not.
    pub rejected: usize,
}

/// How far a judge agrees with the verdicts of people on the same outputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeCalibration {
    /// The id of the evaluator.
    pub evaluator: String,
    /// Cohen's κ: 1 is full agreement, 0 what chance would give.
    pub kappa: f64,
    /// The 95 % interval of κ.
    pub ci95: [f64; 2],
    /// Outputs that both have judged.
    pub n: u64,
}
