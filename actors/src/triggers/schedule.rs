//! Cron schedules. Pure.
//!
//! When the clock leaps forward, a fixed time that is skipped fires at the first instant after the gap. When it goes
//! back, a fixed time fires once, a repeated one (`*`, a step) in both halves.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use croner::Cron;
use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};

/// In the order of a six-field expression.
const FIELDS: [&str; 6] = ["second", "minute", "hour", "day of the month", "month", "day of the week"];

/// Maximum characters of an expression.
pub const LONGEST_EXPRESSION: usize = 200;

/// A schedule in its time zone.
pub struct Schedule {
    cron: Cron,
    zone: Tz,
}

/// A problem with an expression or its time zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScheduleError {
    /// Invalid expression, with a correction.
    Expression(String),
    /// Unknown zone, with the zone that may be meant.
    Zone(Option<&'static str>),
}

impl Schedule {
    /// Parses an expression with five fields, or six with seconds first, in an IANA zone.
    ///
    /// # Errors
    /// All errors in the expression and the zone.
    pub fn parse(expression: &str, zone: &str) -> Result<Self, Vec<ScheduleError>> {
        let mut wrong = Vec::new();
        let cron = cron(expression).map_err(|error| wrong.push(ScheduleError::Expression(error))).ok();
        let parsed = zone.parse::<Tz>().map_err(|_| wrong.push(ScheduleError::Zone(near(zone)))).ok();
        match (cron, parsed) {
            (Some(cron), Some(zone)) => Ok(Self { cron, zone }),
            _ => Err(wrong),
        }
    }

    /// The first time after `after`, if any.
    #[must_use]
    pub fn next_after(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let next = self.cron.find_next_occurrence(&after.with_timezone(&self.zone), false).ok()?;
        // Time must advance even if a zone's offset leaps.
        Some(next.with_timezone(&Utc)).filter(|next| *next > after)
    }

    /// The last fire time from `due`, which is one, to `now`.
    #[must_use]
    pub fn last_of(&self, due: DateTime<Utc>, now: DateTime<Utc>) -> DateTime<Utc> {
        let last = self.cron.find_previous_occurrence(&now.with_timezone(&self.zone), true).ok();
        last.map(|last| last.with_timezone(&Utc)).filter(|last| *last > due && *last <= now).unwrap_or(due)
    }
}

fn cron(expression: &str) -> Result<Cron, String> {
    if expression.chars().count() > LONGEST_EXPRESSION {
        return Err(format!("must have at most {LONGEST_EXPRESSION} characters"));
    }
    let fields = expression.split_whitespace().count();
    if expression.contains('@') || !(5..=6).contains(&fields) {
        return Err(format!("must have 5 fields, or 6 with seconds first; it has {fields}"));
    }
    let parser = CronParser::builder().seconds(Seconds::Optional).year(Year::Disallowed).build();
    parser.parse(expression).map_err(|error| misread(&parser, expression, &error))
}

/// Describes the problem and its field, even for a wrong field among stars.
fn misread(parser: &CronParser, expression: &str, error: &CronError) -> String {
    let fields: Vec<&str> = expression.split_whitespace().collect();
    let names = FIELDS.iter().skip(FIELDS.len().saturating_sub(fields.len()));
    for (at, (field, name)) in fields.iter().zip(names).enumerate() {
        let alone = (0..fields.len()).map(|other| if other == at { *field } else { "*" });
        if let Err(error) = parser.parse(&alone.collect::<Vec<_>>().join(" ")) {
            return format!("has an invalid {name} '{field}': {}", plainly(&error));
        }
    }
    format!("is not a cron expression: {}", plainly(error))
}

fn plainly(error: &CronError) -> String {
    let told = error.to_string();
    let told = told.split_once(": ").map_or(told.as_str(), |(_, told)| told);
    told.trim_end_matches('.').to_lowercase()
}

/// The zone that a wrong name most likely means.
fn near(zone: &str) -> Option<&'static str> {
    let named = |known: &&Tz| known.name().eq_ignore_ascii_case(zone);
    if let Some(same) = chrono_tz::TZ_VARIANTS.iter().find(named) {
        return Some(same.name());
    }
    let short = |name: &'static str| name.rsplit('/').next().unwrap_or(name);
    let city = chrono_tz::TZ_VARIANTS.iter().map(|known| known.name());
    let mut city = city.filter(|name| short(name).eq_ignore_ascii_case(zone));
    city.next().or_else(|| wire::nearest(zone, chrono_tz::TZ_VARIANTS.iter().map(|known| known.name())))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn times(expression: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
        let schedule = Schedule::parse(expression, zone).ok().unwrap();
        let mut now = at(after);
        let mut found = Vec::new();
        for _ in 0..count {
            now = schedule.next_after(now).unwrap();
            found.push(now.format("%dT%H:%M:%S").to_string());
        }
        found
    }

    #[test]
    fn cron_expressions_have_five_or_six_fields() {
        assert_eq!(times("*/20 * * * *", "UTC", "2026-11-22T13:05:00Z", 2), ["22T13:20:00", "22T13:40:00"]);
        assert_eq!(times("30 5 * * * *", "UTC", "2026-11-22T13:05:30Z", 1), ["22T14:05:30"]);
        assert_eq!(times("0 9 * * MON-FRI", "Asia/Tokyo", "2026-11-20T10:00:00Z", 1), ["23T00:00:00"]);
    }

    #[test]
    fn a_time_skipped_by_the_clock_fires_after_the_gap() {
        // Berlin, 29 March 2026: 02:00 becomes 03:00.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z", 2),
            ["29T01:00:00", "30T00:30:00"]
        );
        assert_eq!(
            times("0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", 2),
            ["29T01:00:00", "29T02:00:00"]
        );
    }

    #[test]
    fn a_repeated_time_fires_once_unless_the_schedule_is_hourly() {
        // Berlin, 25 October 2026: 03:00 becomes 02:00.
        assert_eq!(
            times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 2),
            ["25T00:30:00", "26T01:30:00"]
        );
        assert_eq!(
            times("30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z", 3),
            ["25T00:30:00", "25T01:30:00", "25T02:30:00"]
        );
    }

    #[test]
    fn an_impossible_date_has_no_next_time() {
        let never = Schedule::parse("0 0 30 2 *", "UTC").ok().unwrap();
        assert_eq!(never.next_after(at("2026-11-22T00:00:00Z")), None);
    }

    #[test]
    fn the_last_missed_time_counts() {
        let hourly = Schedule::parse("0 * * * *", "UTC").ok().unwrap();
        let due = at("2026-11-22T10:00:00Z");
        assert_eq!(hourly.last_of(due, at("2026-11-22T13:30:00Z")), at("2026-11-22T13:00:00Z"));
        assert_eq!(hourly.last_of(due, at("2026-11-22T10:00:01Z")), due);
        assert_eq!(hourly.last_of(due, due), due);
    }

    #[test]
    fn schedule_errors_name_the_wrong_part_and_suggest_a_fix() {
        let wrong = |expression: &str, zone: &str| Schedule::parse(expression, zone).err().unwrap();
        for expression in
            ["", "* * * *", "* * * * * * *", "@daily", "61 * * * *", "a b c d e", &"*".repeat(300)]
        {
            let errors = wrong(expression, "UTC");
            assert!(matches!(errors.as_slice(), [ScheduleError::Expression(_)]), "{expression}: {errors:?}");
        }
        for (expression, part) in [
            ("61 * * * *", "an invalid minute '61': "),
            ("0 0 0 * * FOO", "an invalid day of the week 'FOO': "),
            ("0 0 32 * *", "an invalid day of the month '32': "),
        ] {
            let errors = wrong(expression, "UTC");
            assert!(
                matches!(errors.as_slice(), [ScheduleError::Expression(text)] if text.contains(part)),
                "{errors:?}"
            );
        }
        for (zone, meant) in [
            ("Europe/Berlyn", Some("Europe/Berlin")),
            ("europe/berlin", Some("Europe/Berlin")),
            ("Berlin", Some("Europe/Berlin")),
            ("utc", Some("UTC")),
            ("+02:00", None),
        ] {
            assert_eq!(wrong("* * * * *", zone), [ScheduleError::Zone(meant)], "{zone}");
        }
        assert_eq!(wrong("x", "x y z").len(), 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Times only increase, none is left out, and the last one of a span belongs to it.
        #[test]
        fn next_times_increase_and_skip_none(start in 1_700_000_000_i64..1_900_000_000, step in 1_u32..60, hour in 0_u32..24,
                            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York",
                                                              "Australia/Lord_Howe", "Asia/Kathmandu"])) {
            for expression in [format!("*/{step} * * * *"), format!("{step} {hour} * * *")] {
                let schedule = Schedule::parse(&expression, zone).ok().unwrap();
                let start = DateTime::from_timestamp(start, 0).unwrap();
                let first = schedule.next_after(start).unwrap();
                let second = schedule.next_after(first).unwrap();
                prop_assert!(start < first && first < second);
                prop_assert_eq!(schedule.next_after(first - chrono::TimeDelta::seconds(1)), Some(first));
                prop_assert_eq!(schedule.last_of(first, second - chrono::TimeDelta::seconds(1)), first);
                prop_assert_eq!(schedule.last_of(first, second), second);
            }
        }
    }
}
