//! Decisions made before a run's first call, and stored with its start.

use super::gate::GATE;
use super::rescore::OriginResults;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use training::Pins;
use wire::{SplitRecord, TrainingKind, TrainingNotice};

/// Stored as JSON in `training_runs.start`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Decided {
    pub(super) kind: TrainingKind,
    /// With defaults filled in; null for an evaluation.
    pub(super) optimizer: Value,
    /// `None` for an evaluation.
    pub(super) splits: Option<SplitRecord>,
    /// The prompts to train.
    pub(super) trainable: Vec<String>,
    /// The pinned versions of other workflows.
    pub(super) pins: Pins,
    pub(super) estimate: Value,
    /// Expected number of case executions.
    pub(super) planned: u64,
    /// Expected number of model requests per case.
    pub(super) calls_of_case: u64,
    /// The model that writes proposals, as node fields.
    pub(super) optimizer_model: Map<String, Value>,
    /// The judge model, as node fields.
    pub(super) judge_model: Map<String, Value>,
    pub(super) warnings: Vec<TrainingNotice>,
    /// The label for inline cases in the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dataset_label: Option<String>,
    /// The request's `resume` member.
    #[serde(default)]
    pub(super) resumed_from: Option<Value>,
    /// Whether a gate started the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_gate: bool,
    /// Results from another run to judge again; then nothing is executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<OriginResults>,
}

impl Decided {
    /// The trigger stored in the run's row.
    pub(super) const fn trigger(&self) -> &'static str {
        if self.is_gate { GATE } else { self.kind.as_str() }
    }
}
