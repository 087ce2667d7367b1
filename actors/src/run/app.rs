//! The app whose page started the run.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The app that a run and its sub-workflows belong to; they act within the release's permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunApp {
    /// The app.
    pub id: Uuid,
    /// The release that froze the binding.
    pub release: Uuid,
    /// The member who started the run; `None` for a visitor who is not signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Uuid>,
}
