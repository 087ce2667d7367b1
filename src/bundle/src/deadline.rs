//! How long a check may take.

use std::time::Duration;

use kernel::Clock;

use crate::error::CheckError;

/// A point in monotonic time.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'c> {
    clock: &'c dyn Clock,
    at: Duration,
}

impl<'c> Deadline<'c> {
    pub(crate) fn after(clock: &'c dyn Clock, limit: Duration) -> Self {
        Self { clock, at: clock.monotonic().saturating_add(limit) }
    }

    /// The earlier of this deadline and one after `limit`.
    pub(crate) fn sooner(&self, limit: Duration) -> Self {
        let at = self.clock.monotonic().saturating_add(limit).min(self.at);
        Self { clock: self.clock, at }
    }

    pub(crate) fn has_passed(&self) -> bool {
        self.clock.monotonic() > self.at
    }

    pub(crate) fn check(&self) -> Result<(), CheckError> {
        if self.has_passed() { Err(CheckError::Overdue) } else { Ok(()) }
    }
}
