//! How far a run has got: what its record and the progress of its events say.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wire::{CallUsage, TrainingProgress};

/// Stored as JSON in `training_runs.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    pub(super) progress: TrainingProgress,
    pub(super) usage: CallUsage,
    /// Milliseconds that the run was active, in all of its lives.
    pub(super) active_ms: u64,
    /// The instance that executed it last.
    pub(super) owner: Uuid,
    /// Since when an endpoint has refused all requests of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused_since: Option<DateTime<Utc>>,
}

impl State {
    /// As it is stored; nothing yet if it cannot be read.
    pub(super) fn stored(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}
