//! Runs started by hosted app pages, as an app's owners see them.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// A run that an app page has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppRunRecord {
    /// UUIDv7, as in the list of runs.
    pub id: String,
    /// The first 12 characters of its visitor's handle. The full handle is secret: it grants read access to the run.
    pub handle_prefix: String,
    /// The binding's name.
    pub binding: String,
    /// The state that its visitor sees, except that an output above the binding's limit stays `succeeded`.
    pub state: AppRunState,
    /// The release that froze the binding.
    pub release_id: String,
    /// The visitor who started it.
    pub visitor: AppVisitor,
    /// Acceptance time.
    pub created_at: Timestamp,
    /// End time.
    pub finished_at: Option<Timestamp>,
    /// Reason for a failure or cancellation.
    pub error: Option<AppRunError>,
}

/// An app run's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppRunState {
    /// Accepted, not started.
    Queued,
    /// Executing or waiting.
    Running,
    /// Ended with an output.
    Succeeded,
    /// Ended with an error.
    Failed,
    /// Exceeded its binding's timeout.
    TimedOut,
    /// Cancelled.
    Cancelled,
}

impl AppRunState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Succeeded, Self::Failed, Self::TimedOut, Self::Cancelled];
    /// Every state's name.
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

    /// Parses a state name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == name)
    }

    /// Whether no other state can follow.
    #[must_use]
    pub const fn is_final(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

/// The visitor who started an app run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppVisitor {
    /// A visitor who was not signed in.
    Anonymous,
    /// A workspace member.
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

/// Reason for an app run's failure or cancellation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppRunError {
    /// The code of the run's error, as in the list of runs; visitors see a different code.
    pub code: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_names_equal_the_wire_names() {
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
