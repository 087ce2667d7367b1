//! Runs that pages of hosted apps have started, as owners of an app see them.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A run that a page of an app has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppRunRecord {
    /// UUIDv7, as in the list of runs.
    pub id: String,
    /// The first 12 characters of the handle that its visitor has. The handle itself is not shown: it is the right to read the run.
    pub handle_prefix: String,
    /// The name of the binding.
    pub binding: String,
    /// The state that its visitor sees, except that an output above the limit of the binding stays `succeeded`.
    pub state: AppRunState,
    /// The release that froze the binding.
    pub release_id: String,
    /// Who has started it.
    pub visitor: AppVisitor,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
    /// Why it failed or was cancelled.
    pub error: Option<AppRunError>,
}

/// The state of an app's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppRunState {
    /// Accepted, not started.
    Queued,
    /// Executes, or waits.
    Running,
    /// Ended with its output.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Took longer than its binding allows.
    TimedOut,
    /// Was cancelled.
    Cancelled,
}

impl AppRunState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::TimedOut, Self::Cancelled];
    /// The name of every state.
    pub const NAMES: [&str; 6] = ["queued", "running", "succeeded", "failed", "timed_out", "cancelled"];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
        }
    }

    /// The state with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether no other state follows.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// Who has started an app's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppVisitor {
    /// A visitor who was not signed in.
    Anonymous,
    /// A member of the workspace.
    Member,
}

impl AppVisitor {
    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous",
            Self::Member => "member",
        }
    }
}

/// Why an app's run failed or was cancelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppRunError {
    /// The code of the run's error, as in the list of runs; visitors see another one.
    pub code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_wire() {
        assert_eq!(AppRunState::ALL.map(AppRunState::as_str), AppRunState::NAMES);
        for state in AppRunState::ALL {
            assert_eq!(AppRunState::from_name(state.as_str()), Some(state));
            assert_eq!(serde_json::to_value(state).unwrap(), state.as_str());
        }
        assert_eq!(AppRunState::from_name("waiting"), None);
        for visitor in [AppVisitor::Anonymous, AppVisitor::Member] {
            assert_eq!(serde_json::to_value(visitor).unwrap(), visitor.as_str());
        }
    }
}
