//! A run's state: the source of its record and its progress events.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use wire::{CallUsage, TrainingProgress};

/// Stored as JSON in `training_runs.state`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct StoredProgress {
    pub(super) progress: TrainingProgress,
    pub(super) usage: CallUsage,
    /// The run's active milliseconds, in all lives.
    pub(super) active_ms: u64,
    /// The instance that executed it last.
    pub(super) owner: Uuid,
    /// When an endpoint began to reject all of the run's requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refused_since: Option<DateTime<Utc>>,
}

impl StoredProgress {
    /// Parses the stored state; the default if it is unreadable.
    pub(super) fn stored(text: Option<&str>) -> Self {
        text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
    }
}
