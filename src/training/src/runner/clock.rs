//! The clock of a case.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use kernel::{Clock, Sleep};

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
