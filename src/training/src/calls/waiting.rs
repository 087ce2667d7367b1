//! Measures the time in which a case's calls wait to be sent. It does not count as the case's time.

use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;

/// Measures the time in which at least one call waits.
#[derive(Debug, Default)]
pub(super) struct WaitTime(Mutex<WaitState>);

#[derive(Debug, Default)]
struct WaitState {
    total: Duration,
    /// The number of waiting calls; `since` is the start of the first one's wait.
    calls: u32,
    since: Duration,
}

impl WaitTime {
    /// Starts a wait, which ends when the guard is dropped.
    pub(super) fn begin<'a>(&'a self, clock: &'a dyn Clock) -> Waits<'a> {
        let mut state = self.0.lock();
        if state.calls == 0 {
            state.since = clock.monotonic();
        }
        state.calls = state.calls.saturating_add(1);
        Waits { waiting: self, clock }
    }

    /// The total up to now.
    pub(super) fn total(&self, clock: &dyn Clock) -> Duration {
        let state = self.0.lock();
        let now =
            if state.calls > 0 { clock.monotonic().saturating_sub(state.since) } else { Duration::ZERO };
        state.total.saturating_add(now)
    }
}

/// The guard of a waiting call.
pub(super) struct Waits<'a> {
    waiting: &'a WaitTime,
    clock: &'a dyn Clock,
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        let mut state = self.waiting.0.lock();
        state.calls = state.calls.saturating_sub(1);
        if state.calls == 0 {
            let waited = self.clock.monotonic().saturating_sub(state.since);
            state.total = state.total.saturating_add(waited);
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use kernel::ManualClock;

    use super::*;

    #[test]
    fn overlapping_waits_count_once() {
        let (clock, waiting) = (ManualClock::new(DateTime::UNIX_EPOCH), WaitTime::default());
        let second = || clock.advance(Duration::from_secs(1));
        second();
        let first = waiting.begin(&clock);
        second();
        let other = waiting.begin(&clock);
        second();
        drop(first);
        second();
        assert_eq!(waiting.total(&clock), Duration::from_secs(3), "it counts while it lasts");
        drop(other);
        second();
        assert_eq!(waiting.total(&clock), Duration::from_secs(3));
    }
}
