//! The app whose page has started a run.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The app that a run belongs to, with its sub-workflows: they act with what the release allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunApp {
    /// The app.
    pub id: Uuid,
    /// The release that froze the binding.
    pub release: Uuid,
    /// The member who has started the run; `None`: a visitor who is not signed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<Uuid>,
}
