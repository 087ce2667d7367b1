//! The report on a training or an evaluation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    CallUsage, CheckpointSummary, DatasetUsed, SeedVsBest, TrainingKind, TrainingNotice, TrainingState,
};
use crate::{RunProblem, Timestamp};

/// A training's findings, final or so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrainingReport {
    /// The run's id.
    pub run: String,
    /// `training` or `evaluation`.
    pub kind: TrainingKind,
    /// The workflow's id.
    pub workflow: String,
    /// Its current name.
    pub workflow_name: Option<String>,
    /// The executed version's number; null for a draft.
    pub version: Option<i32>,
    /// The run's state.
    pub status: TrainingState,
    /// One or a few sentences: whether the training brought an improvement.
    pub verdict: String,
    /// The optimizer with its defaults filled; null for an evaluation.
    pub optimizer: Value,
    /// The cases.
    pub dataset: DatasetUsed,
    /// The stored dataset's name; null for cases in the request.
    pub dataset_name: Option<String>,
    /// Case counts by purpose; null before the start.
    pub splits: Option<CaseCounts>,
    /// `split` or `kfold`, the method of the test estimate; null if the request needed none.
    pub test_estimate: Option<String>,
    /// `improved`, `no_significant_gain` or `no_headroom`; null before the result.
    pub outcome: Option<String>,
    /// The reason why the search ended; null before the result.
    pub stop_reason: Option<String>,
    /// The score on the scoring cases, for the returned prompts or for an evaluation; null before the first one.
    pub score: Option<f64>,
    /// The share of an evaluation's cases that pass; null for a training.
    pub pass_rate: Option<f64>,
    /// Each evaluator's mean, for the returned prompts or for an evaluation.
    pub summary: Map<String, Value>,
    /// The seed compared with the best candidate; null before the result, and if the run was cancelled before it was
    /// known.
    pub seed_vs_best: Option<SeedVsBest>,
    /// The score after each epoch, in epoch order.
    pub curve: Vec<CurvePoint>,
    /// An evaluation's result count for each tenth of the scores from 0 to 1; empty for a training.
    pub distribution: Vec<u64>,
    /// The prompts by name.
    pub prompts: Vec<PromptReport>,
    /// Compared candidates, besides the seed.
    pub candidates: CandidateCounts,
    /// The checkpoints, in order.
    pub checkpoints: Vec<CheckpointSummary>,
    /// Model usage.
    pub usage: CallUsage,
    /// Warnings for the author.
    pub warnings: Vec<TrainingNotice>,
    /// Each judge's agreement with people; empty if no judge was calibrated.
    pub judges: Vec<JudgeCalibration>,
    /// Reason for a failure or cancellation.
    pub error: Option<RunProblem>,
    /// Acceptance time.
    pub created_at: Timestamp,
    /// First start time.
    pub started_at: Option<Timestamp>,
    /// End time.
    pub finished_at: Option<Timestamp>,
}

/// Case counts by purpose. A case can count twice: without a validation split, training and scoring cases are
/// the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CaseCounts {
    /// Cases for making proposals.
    pub train: usize,
    /// Cases for deciding between candidates.
    pub val: usize,
    /// Cases used once, at the end.
    pub test: usize,
    /// Cases used for both training and scoring.
    pub train_and_val: usize,
}

/// The score after an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// The epoch's number, from 1.
    pub epoch: u32,
    /// The best prompts' score after the epoch.
    pub score: f64,
    /// The best score until then.
    pub best_score: f64,
}

/// A prompt of the seed compared with the returned one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PromptReport {
    /// Its name.
    pub name: String,
    /// Its text before the training; null if the seed did not have it.
    pub seed: Option<String>,
    /// Its returned text; null if none has been returned.
    pub best: Option<String>,
    /// The lines of both texts, `-` before the seed's, `+` before the returned ones; null if nothing was returned or
    /// both are equal.
    pub diff: Option<String>,
    /// The reason for the returned text, in the words of the model that wrote it; null if the model gave none.
    pub rationale: Option<String>,
}

/// Counts of candidates that were compared with their parents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CandidateCounts {
    /// Candidates that were better.
    pub accepted: usize,
    /// Candidates that were not better.
    pub rejected: usize,
}

/// A judge's agreement with people's verdicts on the same outputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct JudgeCalibration {
    /// The evaluator's id.
    pub evaluator: String,
    /// Cohen's κ: 1 is full agreement, 0 is chance.
    pub kappa: f64,
    /// The 95 % interval for κ.
    pub ci95: [f64; 2],
    /// Outputs that both have judged.
    pub n: u64,
}
