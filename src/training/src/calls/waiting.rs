//! The time in which calls of a case wait to be sent. It is not the case's time.

use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;

/// Counts the time in which at least one call waits.
#[derive(Debug, Default)]
pub(super) struct Waiting(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    total: Duration,
    /// Calls that wait now, and since when the first of them does.
    calls: u32,
    since: Duration,
}

impl Waiting {
    /// A call waits until this is dropped.
    pub(super) fn begin<'a>(&'a self, clock: &'a dyn Clock) -> Waits<'a> {
        let mut state = self.0.lock();
        if state.calls == 0 {
            state.since = clock.monotonic();
        }
        state.calls = state.calls.saturating_add(1);
        Waits { waiting: self, clock }
    }

    /// The time until now.
    pub(super) fn total(&self, clock: &dyn Clock) -> Duration {
        let state = self.0.lock();
        let now =
            if state.calls > 0 { clock.monotonic().saturating_sub(state.since) } else { Duration::ZERO };
        state.total.saturating_add(now)
    }
}

/// A call that waits.
pub(super) struct Waits<'a> {
    waiting: &'a Waiting,
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
    fn time_in_which_several_calls_wait_counts_once() {
        let (clock, waiting) = (ManualClock::new(DateTime::UNIX_EPOCH), Waiting::default());
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
