//! Adapts the number of concurrent requests per endpoint to its answers. Pure.

use std::time::Duration;

use kernel::backoff;

/// Requests in flight: the initial and the maximum limit.
const FIRST: usize = 8;
const MOST: usize = 64;
/// Consecutive answers before the limit grows by one.
const SUCCESSES: u32 = 20;
/// The first pause if the endpoint names none, and the longest pause.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// Whether a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admission {
    /// Now.
    Now,
    /// Not before this time.
    At(Duration),
    /// After another request has ended.
    Later,
}

/// The state of an endpoint. Times are monotonic.
#[derive(Debug, Clone)]
pub(super) struct Pace {
    limit: usize,
    in_flight: usize,
    successes: u32,
    /// Refusals since the last answer.
    refusals: u32,
    paused_until: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self { limit: FIRST, in_flight: 0, successes: 0, refusals: 0, paused_until: Duration::ZERO }
    }
}

impl Pace {
    /// Takes a slot if one is free.
    pub(super) fn begin(&mut self, now: Duration) -> Admission {
        if now < self.paused_until {
            return Admission::At(self.paused_until);
        }
        if self.in_flight >= self.limit {
            return Admission::Later;
        }
        self.in_flight = self.in_flight.saturating_add(1);
        Admission::Now
    }

    /// Returns the slot.
    pub(super) fn end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The endpoint has answered.
    pub(super) fn answered(&mut self) {
        self.refusals = 0;
        self.successes = self.successes.saturating_add(1);
        if self.successes >= SUCCESSES {
            self.successes = 0;
            self.limit = self.limit.saturating_add(1).min(MOST);
        }
    }

    /// The endpoint refused a request because there are too many: halves the limit, after a pause.
    pub(super) fn refused(
        &mut self,
        now: Duration,
        retry_after: Option<Duration>,
        jitter: impl Fn(Duration) -> Duration,
    ) {
        self.successes = 0;
        // Requests that were in flight together are refused together and count as one refusal.
        if now >= self.paused_until {
            self.limit = (self.limit / 2).max(1);
            self.refusals = self.refusals.saturating_add(1);
            let own = jitter(backoff(PAUSE, self.refusals, LONGEST_PAUSE));
            let pause = match retry_after.filter(|pause| !pause.is_zero()) {
                Some(named) if self.refusals == 1 => named,
                // Refused again after the time it named. Each refused request counts in the budget.
                Some(named) => named.max(own),
                // An endpoint may also name a time in the past.
                None => own,
            };
            self.paused_until = now.saturating_add(pause.min(LONGEST_PAUSE));
        } else if let Some(pause) = retry_after {
            self.paused_until = self.paused_until.max(now.saturating_add(pause.min(LONGEST_PAUSE)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn rate_limits_halve_the_slots_and_answers_add_slots() {
        let mut pace = Pace::default();
        for _ in 0..FIRST {
            assert_eq!(pace.begin(second(1)), Admission::Now);
        }
        assert_eq!(pace.begin(second(1)), Admission::Later);
        // Eight refusals at the same moment count once.
        for _ in 0..FIRST {
            pace.refused(second(2), None, |pause| pause);
            pace.end();
        }
        assert_eq!((pace.limit, pace.begin(second(2))), (4, Admission::At(second(3))));
        for _ in 0..5 {
            let until = pace.paused_until;
            pace.refused(until, None, |pause| pause);
        }
        assert_eq!(pace.limit, 1, "never zero");
        for _ in 0..SUCCESSES * 100 {
            pace.answered();
        }
        assert_eq!(pace.limit, MOST);
    }

    #[test]
    fn repeated_rate_limits_lengthen_the_pauses() {
        let (mut pace, mut now, mut requests) = (Pace::default(), Duration::ZERO, 0);
        while now < second(600) {
            requests += 1;
            pace.refused(now, Some(second(1)), |pause| pause);
            now = pace.paused_until;
        }
        assert_eq!(requests, 10, "not 600");
        pace.answered();
        pace.refused(now, Some(second(1)), |pause| pause);
        assert_eq!(pace.paused_until, now + second(1), "after an answer its word counts again");
    }

    #[test]
    fn a_pause_has_the_length_from_the_endpoint_or_doubles() {
        let mut pace = Pace::default();
        pace.refused(second(10), Some(second(7)), |pause| pause);
        assert_eq!(pace.begin(second(16)), Admission::At(second(17)));
        pace.refused(second(17), None, |pause| pause);
        assert_eq!(pace.begin(second(17)), Admission::At(second(19)));
        pace.refused(second(19), Some(Duration::ZERO), |pause| pause);
        assert_eq!(pace.begin(second(19)), Admission::At(second(23)));
        pace.refused(second(23), Some(second(3_600)), |pause| pause);
        assert_eq!(pace.begin(second(23)), Admission::At(second(323)));
        pace.answered();
        pace.refused(second(400), None, |pause| pause / 2);
        assert_eq!(pace.begin(second(400)), Admission::At(Duration::from_millis(400_500)));
    }
}
