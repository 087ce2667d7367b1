//! Warnings that a run's readers see but that do not fail it: the event `training_warning`.

use serde::Serialize;

/// A warning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable code, such as `prompt_unread`.
    pub code: &'static str,
    /// The message for people.
    pub message: String,
}

impl Warning {
    pub(crate) fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}
