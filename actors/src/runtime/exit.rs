//! Why a life of an actor ended.

/// Why a life of an actor ended; the guardian decides by it what comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExitReason {
    /// Its work is complete: no restart.
    Done,
    /// It has nothing to do; the next message makes a new one from the database.
    Passivated,
    /// The service is shutting down: no restart.
    Drain,
    /// It gave up by itself: restart.
    Failed(String),
    /// It panicked: restart.
    Panicked(String),
    /// It took no message for longer than its policy allows: restart.
    Stuck,
}

impl ExitReason {
    /// Whether a new life follows, if the policy has one left.
    #[must_use]
    pub fn restarts(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::Panicked(_) | Self::Stuck)
    }
}

/// The text of a panic's payload.
pub(crate) fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic".to_owned())
}
