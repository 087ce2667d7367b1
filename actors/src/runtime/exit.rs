//! The reason why an actor life ended.

/// The reason why an actor life ended; it determines the guardian's next action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// Its work is complete: no restart.
    Done,
    /// It is idle; the next message creates a new actor from the database.
    Passivated,
    /// The service is shutting down: no restart.
    Drain,
    /// It failed by itself: restart.
    Failed(String),
    /// It panicked: restart.
    Panicked(String),
    /// It handled no message for longer than its policy allows: restart.
    Stuck,
}

impl ExitReason {
    /// Whether a new life follows, if the policy allows another restart.
    #[must_use]
    pub fn restarts(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Panicked(_) | Self::Stuck)
    }
}

/// The text in a panic payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}
