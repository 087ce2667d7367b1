//! Compares the clock with the database's, or else with this program's build date.

use chrono::{DateTime, TimeDelta, Utc};
use store::Inspection;

use super::report::Finding;

const CLOCK: &str = "clock";
const REMEDY: &str = "correct the wrong clock, and synchronise it with NTP";

/// This program was built after this time.
const MADE_AFTER: &str = "2026-11-01T00:00:00Z";

pub(super) fn judge(now: DateTime<Utc>, database: Option<&Inspection>) -> Finding {
    let shown = now.format("%Y-%m-%d %H:%M:%S UTC");
    if DateTime::parse_from_rfc3339(MADE_AFTER).is_ok_and(|made| now < made) {
        return Finding::problem(
            CLOCK,
            format!("it says {shown}, which is before this program was built"),
            REMEDY,
        );
    }
    let Some(seen) = database else { return Finding::ok(CLOCK, format!("it says {shown}")) };
    let off = seen.clock_ahead.abs();
    let sure = off - seen.round_trip;
    let side = if seen.clock_ahead < TimeDelta::zero() { "behind" } else { "ahead of" };
    let message =
        format!("the database's is {} ms {side} this machine's, which says {shown}", off.num_milliseconds());
    if sure > TimeDelta::minutes(1) {
        Finding::problem(CLOCK, message, REMEDY)
    } else if sure > TimeDelta::seconds(1) {
        Finding::warning(CLOCK, message, REMEDY)
    } else {
        Finding::ok(
            CLOCK,
            format!("it says {shown}, and the database's is within {} ms", off.num_milliseconds() + 1),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::database::tests::seen;
    use super::super::report::Level;
    use super::*;

    #[test]
    fn a_clock_difference_counts_only_beyond_the_round_trip_time() {
        let now: DateTime<Utc> = "2026-12-01T00:00:00Z".parse().unwrap();
        let ahead = |millis, took| {
            let (clock_ahead, round_trip) = (TimeDelta::milliseconds(millis), TimeDelta::milliseconds(took));
            judge(now, Some(&Inspection { clock_ahead, round_trip, ..seen() }))
        };
        assert_eq!(ahead(900, 0).level, Level::Ok);
        assert_eq!(ahead(1_500, 0).level, Level::Warning);
        assert_eq!(ahead(1_500, 600).level, Level::Ok);
        assert_eq!(ahead(-70_000, 600).level, Level::Problem);
        assert!(ahead(-70_000, 0).message.contains("70000 ms behind"));
        assert_eq!(judge(now, None).level, Level::Ok);
        assert_eq!(judge(DateTime::UNIX_EPOCH, None).level, Level::Problem);
    }
}
