//! A report as JSON has it.

use serde::Serialize;
use serde_json::Value;
use wire::{
    CallUsage, CheckpointSummary, DatasetUsed, RunProblem, SeedVsBest, Timestamp, TrainingKind,
    TrainingNotice, TrainingState,
};

use super::svg::{self, CurveResult};

/// What a training has found, at its end or so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    /// The id of the run.
    pub run: String,
    /// `training` or `evaluation`.
    pub kind: TrainingKind,
    /// The id of the workflow.
    pub workflow: String,
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
    /// How many cases were for what; null before the start.
    pub splits: Option<CaseCounts>,
    /// `split` or `kfold`: how the test score was estimated; null if the request asked for none.
    pub test_estimate: Option<String>,
    /// `improved`, `no_significant_gain` or `no_headroom`; null before the result.
    pub outcome: Option<String>,
    /// Why the search ended; null before the result.
    pub stop_reason: Option<String>,
    /// The seed against the best candidate; null before the result, and if the run was cancelled before it was known.
    pub seed_vs_best: Option<SeedVsBest>,
    /// The score after each epoch, in the order of the epochs.
    pub curve: Vec<CurvePoint>,
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

impl Report {
    /// The curve as a standalone SVG document, with the seed and the result if they are known.
    #[must_use]
    pub fn curve_svg(&self) -> String {
        svg::curve_svg(&self.curve, self.seed_score(), self.curve_result(), &self.curve_title())
    }

    /// The score of the seed on the scoring cases.
    pub(super) fn seed_score(&self) -> Option<f64> {
        self.seed_vs_best.as_ref().map(|compared| compared.val.seed).filter(|score| score.is_finite())
    }

    /// The score of the best candidate, and the interval that follows from that of its difference.
    pub(super) fn curve_result(&self) -> Option<CurveResult> {
        let compared = self.seed_vs_best.as_ref()?;
        let [low, high] = compared.ci95.map(|end| compared.val.seed + end);
        Some(CurveResult { best: compared.val.best, low, high })
    }

    pub(super) fn curve_title(&self) -> String {
        format!("Scores of training {}", self.run)
    }
}

/// How many cases were for what. A case can count in two of them: without a validation split, training and scoring cases are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
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
pub struct PromptReport {
    /// Its name.
    pub name: String,
    /// Its text before the training; null if the seed did not have it.
    pub seed: Option<String>,
    /// Its returned text; null if none was returned, or not yet.
    pub best: Option<String>,
    /// The lines of both texts, as `line_diff` writes them; null if nothing was returned or both are equal.
    pub diff: Option<String>,
}

/// How many candidates were compared with their parents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct CandidateCounts {
    /// They were better.
    pub accepted: usize,
    /// They were not.
    pub rejected: usize,
}

/// How far a judge agrees with the verdicts of people on the same outputs.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
