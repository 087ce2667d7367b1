//! The clock of a case, and its duration.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::{Clock, Sleep};

use crate::calls::CallScope;

/// Time passes, but `now()` in templates is fixed: a case that is repeated after a crash sends the same requests.
pub(super) struct FrozenClock {
    pub(super) clock: Arc<dyn Clock>,
    pub(super) at: DateTime<Utc>,
}

impl Clock for FrozenClock {
    fn now(&self) -> DateTime<Utc> {
        self.at
    }

    fn monotonic(&self) -> Duration {
        self.clock.monotonic()
    }

    fn sleep(&self, duration: Duration) -> Sleep {
        self.clock.sleep(duration)
    }
}

/// The duration of a case, without the time in which its calls wait for permits.
pub(super) struct CaseTime<'a> {
    scope: &'a CallScope<'a>,
    begun: Duration,
}

impl<'a> CaseTime<'a> {
    /// Starts the measurement.
    pub(super) fn begin(scope: &'a CallScope<'a>) -> Self {
        Self { scope, begun: scope.clock().monotonic() }
    }

    /// The duration so far.
    pub(super) fn spent(&self) -> Duration {
        let passed = self.scope.clock().monotonic().saturating_sub(self.begun);
        passed.saturating_sub(self.scope.waited())
    }

    /// Ends when the case has taken this long.
    pub(super) async fn reaches(&self, limit: Duration) {
        loop {
            match limit.saturating_sub(self.spent()) {
                Duration::ZERO => break,
                // Calls may have waited meanwhile, which does not count.
                left => self.scope.clock().sleep(left).await,
            }
        }
    }
}
