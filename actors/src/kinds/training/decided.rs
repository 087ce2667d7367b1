//! What is decided before the first call of a run, and stored with its start.

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
    /// With its defaults filled; null for an evaluation.
    pub(super) optimizer: Value,
    /// `None` for an evaluation.
    pub(super) splits: Option<SplitRecord>,
    /// The prompts that are trained.
    pub(super) trainable: Vec<String>,
    /// The versions of other workflows.
    pub(super) pins: Pins,
    pub(super) estimate: Value,
    /// Executions of cases that are expected.
    pub(super) planned: u64,
    /// Requests to models that one case is expected to need.
    pub(super) calls_of_case: u64,
    /// What writes proposals, as fields of a node.
    pub(super) optimizer_model: Map<String, Value>,
    /// What judges, as fields of a node.
    pub(super) judge_model: Map<String, Value>,
    pub(super) warnings: Vec<TrainingNotice>,
    /// The label of cases that the request has brought.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) dataset_label: Option<String>,
    /// `resume` of the request.
    #[serde(default)]
    pub(super) resumed_from: Option<Value>,
    /// Whether a gate has started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_gate: bool,
    /// Results of another run that are judged again; nothing is executed then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) origin: Option<OriginResults>,
}

impl Decided {
    /// What has started the run, as its row has it.
    pub(super) const fn trigger(&self) -> &'static str {
        if self.is_gate { GATE } else { self.kind.as_str() }
    }
}
