//! Detects wall clock leaps: a clock that is set after boot, or a machine that was suspended.
//!
//! Ids, due times and limits depend on the wall clock. Pure: the caller passes both clocks.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

/// Maximum drift between two checks.
const TOLERANCE: TimeDelta = TimeDelta::seconds(5);

/// The wall clock's change since the last check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Leap {
    /// It advanced like monotonic time.
    None,
    /// It was set ahead by this much.
    Ahead(TimeDelta),
    /// It was set back by this much.
    Back(TimeDelta),
}

/// Compares the wall clock with monotonic time.
#[derive(Debug)]
pub(crate) struct ClockWatch {
    wall: DateTime<Utc>,
    monotonic: Duration,
}

impl ClockWatch {
    pub(crate) fn new(wall: DateTime<Utc>, monotonic: Duration) -> Self {
        Self { wall, monotonic }
    }

    /// Compares both clocks with the last check.
    pub(crate) fn look(&mut self, wall: DateTime<Utc>, monotonic: Duration) -> Leap {
        let passed = TimeDelta::from_std(monotonic.saturating_sub(self.monotonic)).unwrap_or(TimeDelta::MAX);
        let leaped = (wall - self.wall).checked_sub(&passed).unwrap_or(TimeDelta::MIN);
        *self = Self { wall, monotonic };
        if leaped > TOLERANCE {
            Leap::Ahead(leaped)
        } else if leaped < -TOLERANCE {
            Leap::Back(-leaped)
        } else {
            Leap::None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_jump_is_reported_once_with_its_direction() {
        let at = |seconds: i64| DateTime::UNIX_EPOCH + TimeDelta::seconds(seconds);
        let second = Duration::from_secs;
        let mut watch = ClockWatch::new(at(1000), second(10));
        assert_eq!(watch.look(at(1002), second(12)), Leap::None);
        assert_eq!(watch.look(at(1009), second(14)), Leap::None, "a little is drift");
        assert_eq!(watch.look(at(1000 + 864_000), second(16)), Leap::Ahead(TimeDelta::seconds(863_989)));
        assert_eq!(watch.look(at(1002 + 864_000), second(18)), Leap::None);
        assert_eq!(watch.look(at(1004), second(20)), Leap::Back(TimeDelta::seconds(864_000)));
        assert_eq!(watch.look(at(1006), second(22)), Leap::None);
    }
}
