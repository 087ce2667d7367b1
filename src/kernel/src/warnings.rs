//! Warnings that callers can cause: each code is logged at most once a minute, so that no caller fills the log.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::Mutex;

use crate::{Clock, SystemClock};

/// The interval between two warnings with the same code.
const INTERVAL: Duration = Duration::from_secs(60);

/// Decides which warnings of this process are logged.
pub static WARNINGS: LazyLock<WarningLimiter> =
    LazyLock::new(|| WarningLimiter::new(Arc::new(SystemClock::new())));

/// Admits one warning a minute for each code. Codes are constants, so their number is bounded.
pub struct WarningLimiter {
    clock: Arc<dyn Clock>,
    latest: Mutex<HashMap<&'static str, Latest>>,
}

struct Latest {
    admitted_at: Duration,
    suppressed: u64,
}

impl WarningLimiter {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, latest: Mutex::default() }
    }

    /// Returns the number of warnings suppressed since the last one with this code; `None` if this one is suppressed,
    /// too.
    pub fn admit(&self, code: &'static str) -> Option<u64> {
        let now = self.clock.monotonic();
        let mut latest = self.latest.lock();
        let Some(known) = latest.get_mut(code) else {
            latest.insert(code, Latest { admitted_at: now, suppressed: 0 });
            return Some(0);
        };
        if now.saturating_sub(known.admitted_at) < INTERVAL {
            known.suppressed = known.suppressed.saturating_add(1);
            return None;
        }
        known.admitted_at = now;
        Some(std::mem::take(&mut known.suppressed))
    }
}

/// Logs an event that callers can cause: a `warn` line with its `code` at most once a minute, including the number
/// suppressed; the others are `debug` lines.
#[macro_export]
macro_rules! warn_once_a_minute {
    ($code:expr, $($event:tt)+) => {{
        let code: &'static str = $code;
        match $crate::WARNINGS.admit(code) {
            Some(suppressed) => ::tracing::warn!(code, suppressed, $($event)+),
            None => ::tracing::debug!(code, $($event)+),
        }
    }};
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::ManualClock;

    #[test]
    fn each_code_is_admitted_once_a_minute_with_the_number_suppressed() {
        let clock = ManualClock::new(DateTime::UNIX_EPOCH);
        let limiter = WarningLimiter::new(Arc::new(clock.clone()));
        assert_eq!((limiter.admit("a"), limiter.admit("b")), (Some(0), Some(0)));
        clock.advance(Duration::from_secs(59));
        assert_eq!((limiter.admit("a"), limiter.admit("a"), limiter.admit("b")), (None, None, None));
        clock.advance(Duration::from_secs(1));
        assert_eq!((limiter.admit("a"), limiter.admit("a")), (Some(2), None));
        clock.advance(Duration::from_secs(60));
        assert_eq!((limiter.admit("a"), limiter.admit("b")), (Some(1), Some(1)));
    }
}
