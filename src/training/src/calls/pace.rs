//! How many requests an endpoint takes at once, learnt from its answers. Pure.

use std::time::Duration;

/// Requests in flight at first, and the most.
const FIRST: usize = 8;
const MOST: usize = 64;
/// Answers in a row after which one more is tried.
const SUCCESSES: u32 = 20;
/// The first pause if the endpoint names none, and the longest.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Whether a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// Now.
    Now,
    /// Not before this time.
    At(Duration),
    /// When another one has ended.
    Later,
}

/// The state of an endpoint. Times are those of a monotonic clock.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    limit: usize,
    in_flight: usize,
    successes: u32,
    /// Refusals since the last answer.
    refusals: u32,
    paused_until: Duration,
    /// Since when there were only refusals.
    refused_since: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            limit: FIRST,
            in_flight: 0,
            successes: 0,
            refusals: 0,
            paused_until: Duration::ZERO,
            refused_since: None,
        }
    }
}

impl Pace {
    /// Takes a place if there is one.
    pub(super) fn begin(&mut self, now: Duration) -> Turn {
        if now < self.paused_until {
            return Turn::At(self.paused_until);
        }
        if self.in_flight >= self.limit {
            return Turn::Later;
        }
        self.in_flight = self.in_flight.saturating_add(1);
        Turn::Now
    }

    /// Returns the place.
    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The endpoint has answered.
    pub(super) fn answered(&mut self) {
        (self.refusals, self.refused_since) = (0, None);
        self.successes = self.successes.saturating_add(1);
        if self.successes >= SUCCESSES {
            self.successes = 0;
            self.limit = self.limit.saturating_add(1).min(MOST);
        }
    }

    /// The endpoint has refused a request because there are too many: it gets half as many, after a pause.
    pub(super) fn refused(&mut self, now: Duration, retry_after: Option<Duration>) {
        self.successes = 0;
        self.refused_since.get_or_insert(now);
        let is_first = now >= self.paused_until;
        // Requests that were in flight together are refused together: that is one refusal.
        if is_first {
            self.limit = (self.limit / 2).max(1);
            let own = PAUSE.saturating_mul(1_u32.checked_shl(self.refusals.min(16)).unwrap_or(u32::MAX));
            self.paused_until = now.saturating_add(retry_after.unwrap_or(own).min(LONGEST_PAUSE));
            self.refusals = self.refusals.saturating_add(1);
        } else if let Some(pause) = retry_after {
            self.paused_until = self.paused_until.max(now.saturating_add(pause.min(LONGEST_PAUSE)));
        }
    }

    /// How long there were only refusals.
    pub(super) fn refused_for(&self, now: Duration) -> Duration {
        self.refused_since.map_or(Duration::ZERO, |since| now.saturating_sub(since))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn refusals_halve_the_places_and_answers_add_to_them() {
        let mut pace = Pace::default();
        for _ in 0..FIRST {
            assert_eq!(pace.begin(second(1)), Turn::Now);
        }
        assert_eq!(pace.begin(second(1)), Turn::Later);
        // Eight refusals of one moment count once.
        for _ in 0..FIRST {
            pace.refused(second(2), None);
            pace.end();
        }
        assert_eq!((pace.limit, pace.begin(second(2))), (4, Turn::At(second(3))));
        for _ in 0..5 {
            let until = pace.paused_until;
            pace.refused(until, None);
        }
        assert_eq!(pace.limit, 1, "never none");
        for _ in 0..SUCCESSES * 100 {
            pace.answered();
        }
        assert_eq!(pace.limit, MOST);
    }

    #[test]
    fn a_pause_is_as_long_as_the_endpoint_says_or_doubles() {
        let mut pace = Pace::default();
        pace.refused(second(10), Some(second(7)));
        assert_eq!(pace.begin(second(16)), Turn::At(second(17)));
        pace.refused(second(17), None);
        assert_eq!(pace.begin(second(17)), Turn::At(second(19)));
        pace.refused(second(19), None);
        assert_eq!(pace.begin(second(19)), Turn::At(second(23)));
        pace.refused(second(23), Some(second(3_600)));
        assert_eq!(pace.begin(second(23)), Turn::At(second(323)));
        assert_eq!(pace.refused_for(second(323)), second(313));
        pace.answered();
        assert_eq!(pace.refused_for(second(400)), Duration::ZERO);
    }
}
