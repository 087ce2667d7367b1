//! What a run tells its readers without failing: the event `training_warning`.

use serde::Serialize;

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable word, such as `prompt_unread`.
    pub code: &'static str,
    /// For people.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
