//! Time limits.

use std::time::Duration;

use kernel::Clock;

use crate::error::CheckError;

/// A point in monotonic time.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'c> {
    clock: &'c dyn Clock,
    at: Duration,
    part: Option<PartDeadline>,
}

/// The time limit for one part. Waiting for a busy machine does not count.
#[derive(Debug, Clone, Copy)]
struct PartDeadline {
    at: Duration,
    /// The same limit in this thread's processor time.
    processor_at: Option<Duration>,
}

impl<'c> Deadline<'c> {
    pub(crate) fn after(clock: &'c dyn Clock, limit: Duration) -> Self {
        Self { clock, at: clock.monotonic().saturating_add(limit), part: None }
    }

    /// Adds an earlier limit for a part of the check that this thread does in at most `limit`.
    pub(crate) fn part(&self, limit: Duration) -> Self {
        let part = PartDeadline {
            at: self.clock.monotonic().saturating_add(limit),
            processor_at: processor_time().map(|time| time.saturating_add(limit)),
        };
        Self { part: Some(part), ..*self }
    }

    pub(crate) fn has_passed(&self) -> bool {
        let now = self.clock.monotonic();
        now > self.at || self.part.is_some_and(|part| part.has_passed(now))
    }

    pub(crate) fn check(&self) -> Result<(), CheckError> {
        if self.has_passed() { Err(CheckError::Overdue) } else { Ok(()) }
    }
}

impl PartDeadline {
    fn has_passed(self, now: Duration) -> bool {
        // A thread never uses more processor time than real time.
        now > self.at && self.processor_at.is_none_or(|at| processor_time().is_none_or(|time| time > at))
    }
}

/// This thread's processor time; `None` if the system does not report it.
fn processor_time() -> Option<Duration> {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(Duration::from_nanos(times.split_ascii_whitespace().next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_after_its_processor_time() {
        let clock = kernel::ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let limit = Duration::from_millis(200);
        let whole = Deadline::after(&clock, Duration::from_secs(60));
        let part = whole.part(limit);
        let start = processor_time().unwrap();
        clock.advance(Duration::from_secs(30));
        // The machine was busy with other work.
        assert!(!part.has_passed() || processor_time().unwrap() - start > limit / 2);
        while processor_time().unwrap() - start <= limit * 2 {
            std::hint::spin_loop();
        }
        assert!(part.has_passed() && !whole.has_passed());
        // While the clock does not advance, the part does not expire, whatever the machine does.
        let part = whole.part(Duration::ZERO);
        assert!(!part.has_passed());
        clock.advance(Duration::from_secs(31));
        assert!(part.has_passed() && whole.has_passed() && part.check().is_err());
    }
}
