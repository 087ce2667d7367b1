//! Times and dates: `now()`, `today()` and the filters that calculate with them.
//!
//! Times are RFC 3339 texts, dates are `2026-11-23`. The run's clock stops during a super-step, so a resumed run sees
//! the same times.

use std::ops::RangeInclusive;
use std::time::Duration;

use chrono::format::{Item, StrftimeItems};
use chrono::{
    DateTime, Datelike as _, Days, Months, NaiveDate, NaiveDateTime, SecondsFormat, TimeDelta, TimeZone as _,
    Utc,
};
use chrono_tz::Tz;
use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, Value as View};

use super::{invalid, zone};

/// Allowed years: with any offset they have four digits.
const YEARS: RangeInclusive<i32> = 1..=9_998;
/// Maximum format characters.
const FORMAT_LENGTH: usize = 200;

/// `now()`: the time in UTC, in milliseconds.
pub(crate) fn now(now: DateTime<Utc>) -> View {
    View::from_function(move || now.to_rfc3339_opts(SecondsFormat::Millis, true))
}

/// `today(zone='UTC')`: the date in a time zone.
pub(crate) fn today(now: DateTime<Utc>) -> View {
    View::from_function(move |options: Kwargs| {
        let today = now.with_timezone(&zone(&options)?).date_naive();
        options.assert_all_used()?;
        Ok::<_, Error>(today.to_string())
    })
}

/// A time in a template.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Moment {
    Date(NaiveDate),
    Time(DateTime<Tz>),
}

impl Moment {
    /// Parses an RFC 3339 time, a time without an offset (in the zone), a date, or Unix seconds.
    fn read(value: &View, zone: Tz) -> Result<Self, Error> {
        let moment = Self::parse(value, zone)?;
        let utc = match moment {
            Self::Date(date) => date,
            Self::Time(time) => time.naive_utc().date(),
        };
        if !YEARS.contains(&utc.year()) {
            return Err(invalid(format!("{value} is not a time: the year must be from 1 to 9998")));
        }
        Ok(moment)
    }

    fn parse(value: &View, zone: Tz) -> Result<Self, Error> {
        let bad = || {
            invalid(format!("{value} is not a time; use 2026-11-23T09:00:00Z, 2026-11-23 or Unix seconds"))
        };
        if value.kind() == ValueKind::Number {
            let seconds = f64::try_from(value.clone())?;
            let elapsed =
                Duration::try_from_secs_f64(seconds.abs()).ok().and_then(|of| TimeDelta::from_std(of).ok());
            let time = elapsed.and_then(|elapsed| {
                let elapsed = if seconds < 0.0 { -elapsed } else { elapsed };
                DateTime::UNIX_EPOCH.checked_add_signed(elapsed)
            });
            let time = time.ok_or_else(bad)?;
            return Ok(Self::Time(time.with_timezone(&zone)));
        }
        let text = value.as_str().ok_or_else(bad)?.trim();
        if let Ok(time) = DateTime::parse_from_rfc3339(text) {
            return Ok(Self::Time(time.with_timezone(&zone)));
        }
        if let Ok(date) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
            return Ok(Self::Date(date));
        }
        let formats = ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f", "%Y-%m-%d %H:%M"];
        let naive = formats.iter().find_map(|format| NaiveDateTime::parse_from_str(text, format).ok());
        local(naive.ok_or_else(bad)?, zone).map(Self::Time).ok_or_else(bad)
    }

    /// Returns the time; for a date, its midnight in the zone.
    fn time(self, zone: Tz) -> Result<DateTime<Tz>, Error> {
        match self {
            Self::Time(time) => Ok(time),
            Self::Date(date) => {
                local(date.into(), zone).ok_or_else(|| invalid("the date has no midnight in this time zone"))
            }
        }
    }

    fn naive(self) -> NaiveDateTime {
        match self {
            Self::Date(date) => date.into(),
            Self::Time(time) => time.naive_local(),
        }
    }
}

/// Resolves a local time: an ambiguous one to the earlier time, a skipped one to a time later by the gap.
fn local(naive: NaiveDateTime, zone: Tz) -> Option<DateTime<Tz>> {
    let at = |naive: &NaiveDateTime| zone.from_local_datetime(naive).earliest();
    at(&naive).or_else(|| {
        let before = naive.checked_sub_signed(TimeDelta::hours(6))?;
        at(&before)?.checked_add_signed(TimeDelta::hours(6))
    })
}

/// `date_add(years=, months=, weeks=, days=, hours=, minutes=, seconds=, zone='UTC')`: days and longer units by the
/// zone's calendar, hours and shorter by elapsed time. A date plus whole days stays a date.
pub(crate) fn add(value: &View, options: Kwargs) -> Result<String, Error> {
    let zone = zone(&options)?;
    let too_far = || invalid("the time is out of range");
    let sum = |parts: &[(&str, i64)]| -> Result<i64, Error> {
        parts.iter().try_fold(0_i64, |sum, (name, length)| {
            let count: i64 = options.get::<Option<i64>>(name)?.unwrap_or_default();
            count.checked_mul(*length).and_then(|more| sum.checked_add(more)).ok_or_else(too_far)
        })
    };
    let months = sum(&[("years", 12), ("months", 1)])?;
    let days = sum(&[("weeks", 7), ("days", 1)])?;
    let seconds = sum(&[("hours", 3_600), ("minutes", 60), ("seconds", 1)])?;
    options.assert_all_used()?;
    let moment = Moment::read(value, zone)?;
    let naive = shifted(moment.naive(), months, days);
    let naive = naive.filter(|naive| YEARS.contains(&naive.year())).ok_or_else(too_far)?;
    let time = match moment {
        Moment::Date(_) if seconds == 0 => return Ok(naive.date().to_string()),
        Moment::Time(time) if months == 0 && days == 0 => time,
        Moment::Date(_) | Moment::Time(_) => local(naive, zone).ok_or_else(too_far)?,
    };
    let time = TimeDelta::try_seconds(seconds).and_then(|by| time.checked_add_signed(by));
    let time = time.filter(|time| YEARS.contains(&time.naive_utc().year()));
    Ok(written(time.ok_or_else(too_far)?))
}

fn shifted(naive: NaiveDateTime, months: i64, days: i64) -> Option<NaiveDateTime> {
    let by = Months::new(u32::try_from(months.unsigned_abs()).ok()?);
    let naive = if months < 0 { naive.checked_sub_months(by) } else { naive.checked_add_months(by) }?;
    let by = Days::new(days.unsigned_abs());
    if days < 0 { naive.checked_sub_days(by) } else { naive.checked_add_days(by) }
}

fn written(time: DateTime<Tz>) -> String {
    let digits =
        if time.timestamp_subsec_millis() == 0 { SecondsFormat::Secs } else { SecondsFormat::Millis };
    time.to_rfc3339_opts(digits, time.timezone() == chrono_tz::UTC)
}

/// `date_format(format, zone='UTC')`, with `strftime` letters; RFC 3339 without a format.
pub(crate) fn format(value: &View, format: Option<&str>, options: Kwargs) -> Result<String, Error> {
    let zone = zone(&options)?;
    options.assert_all_used()?;
    let time = Moment::read(value, zone)?.time(zone)?;
    let Some(format) = format else { return Ok(written(time)) };
    if format.chars().count() > FORMAT_LENGTH {
        return Err(invalid(format!("a format has at most {FORMAT_LENGTH} characters")));
    }
    let items: Vec<Item<'_>> = StrftimeItems::new(format).collect();
    if items.iter().any(|item| matches!(item, Item::Error)) {
        return Err(invalid(format!(
            "'{format}' is not a valid format; use strftime letters, such as '%d.%m.%Y %H:%M'"
        )));
    }
    Ok(time.format_with_items(items.iter()).to_string())
}

/// `timestamp`: Unix seconds, with milliseconds as a fraction.
pub(crate) fn timestamp(value: &View, options: Kwargs) -> Result<View, Error> {
    let zone = zone(&options)?;
    options.assert_all_used()?;
    let millis = Moment::read(value, zone)?.time(zone)?.timestamp_millis();
    Ok(seconds(millis))
}

/// `seconds_since(other)`: seconds from the other time to this one; negative if this one is earlier.
pub(crate) fn seconds_since(value: &View, other: &View, options: Kwargs) -> Result<View, Error> {
    let zone = zone(&options)?;
    options.assert_all_used()?;
    let millis = |value: &View| Ok::<_, Error>(Moment::read(value, zone)?.time(zone)?.timestamp_millis());
    Ok(seconds(millis(value)?.saturating_sub(millis(other)?)))
}

fn seconds(millis: i64) -> View {
    if millis % 1_000 == 0 {
        return View::from(millis / 1_000);
    }
    let seconds = Duration::from_millis(millis.unsigned_abs()).as_secs_f64();
    View::from(if millis < 0 { -seconds } else { seconds })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::template::evaluate;

    fn value(expression: &str) -> Value {
        let scope =
            minijinja::Value::from_pairs([("t", minijinja::Value::from("2026-03-28T09:00:00+01:00"))]);
        evaluate(expression, &scope).unwrap_or_else(|error| json!({"error": error.message}))
    }

    #[test]
    fn times_are_shifted_by_calendar_and_clock_units() {
        for (expression, expected) in [
            ("t | date_add(hours=1)", "2026-03-28T09:00:00Z"),
            ("t | date_add(seconds=-0, minutes=90)", "2026-03-28T09:30:00Z"),
            // Across the change to summer time: a day has 23 hours.
            ("t | date_add(days=1, zone='Europe/Berlin')", "2026-03-29T09:00:00+02:00"),
            ("t | date_add(hours=24, zone='Europe/Berlin')", "2026-03-29T10:00:00+02:00"),
            // 02:30 does not exist on that day.
            ("'2026-03-28T02:30' | date_add(days=1, zone='Europe/Berlin')", "2026-03-29T03:30:00+02:00"),
            // 02:30 exists twice on that day; the first one counts.
            ("'2026-10-24T02:30' | date_add(days=1, zone='Europe/Berlin')", "2026-10-25T02:30:00+02:00"),
            ("'2026-01-31' | date_add(months=1)", "2026-02-28"),
            ("'2028-02-29' | date_add(years=-1, weeks=1)", "2027-03-07"),
            ("'2026-11-23' | date_add(hours=9)", "2026-11-23T09:00:00Z"),
            ("'2026-11-23' | date_add(hours=9, zone='America/New_York')", "2026-11-23T09:00:00-05:00"),
            ("0 | date_add(days=1)", "1970-01-02T00:00:00Z"),
            ("0.25 | date_add(days=1)", "1970-01-02T00:00:00.250Z"),
            ("-1.5 | date_add(days=1)", "1970-01-01T23:59:58.500Z"),
        ] {
            assert_eq!(value(expression), json!(expected), "{expression}");
        }
    }

    #[test]
    fn times_are_written_and_compared() {
        for (expression, expected) in [
            ("t | date_format", json!("2026-03-28T08:00:00Z")),
            ("t | date_format('%d.%m.%Y %H:%M %Z', zone='Europe/Berlin')", json!("28.03.2026 09:00 CET")),
            ("'2026-11-23' | date_format('%A, %B %-d')", json!("Monday, November 23")),
            ("t | timestamp", json!(1_774_684_800)),
            ("'2026-11-23' | timestamp(zone='Europe/Berlin')", json!(1_795_388_400)),
            ("'1970-01-01T00:00:00.5Z' | timestamp", json!(0.5)),
            ("'1969-12-31T23:59:58.5Z' | timestamp", json!(-1.5)),
            ("t | seconds_since('2026-03-28T07:59:00Z')", json!(60)),
            ("'2026-03-01' | seconds_since(t) < 0", json!(true)),
            ("'abc' | sha256", json!("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
        ] {
            assert_eq!(value(expression), expected, "{expression}");
        }
    }

    #[test]
    fn invalid_times_have_clear_errors() {
        for (expression, text) in [
            ("'soon' | date_format", "soon is not a time; use 2026-11-23T09:00:00Z"),
            ("'2026-02-30' | timestamp", "is not a time"),
            ("[] | timestamp", "is not a time"),
            ("1e300 | timestamp", "is not a time"),
            ("8210266876799 | date_format(zone='Asia/Tokyo')", "the year must be from 1 to 9998"),
            ("-8334601228800 | date_format(zone='America/New_York')", "the year must be from 1 to 9998"),
            ("'9998-12-31' | date_add(days=1)", "out of range"),
            ("'9998-12-31T23:00:00Z' | date_add(hours=1)", "out of range"),
            ("t | date_format('%Q')", "is not a valid format"),
            ("t | date_format('%Y' * 200)", "at most 200 characters"),
            ("t | date_format(zone='Berlin')", "unknown time zone 'Berlin'"),
            ("t | date_add(day=1)", "unknown keyword argument 'day'"),
            ("t | date_add(years=9223372036854775807)", "out of range"),
            ("t | date_add(days=9223372036854775807)", "out of range"),
            ("t | date_add(seconds=9223372036854775807)", "out of range"),
            ("5 | sha256", "sha256 requires a string"),
        ] {
            let error = value(expression)["error"].as_str().unwrap_or_default().to_owned();
            assert!(error.contains(text), "{expression}: {error}");
        }
    }
}
