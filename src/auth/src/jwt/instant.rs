//! Points in time in tokens (RFC 7519, `NumericDate`).

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// Allowed clock skew of an issuer ahead of ours, for `nbf` and `iat`. `exp` has none.
pub(crate) const LEEWAY: TimeDelta = TimeDelta::seconds(30);

/// The last second of the year 9999; anything beyond it, in either direction, is not a date.
const LAST: i64 = 253_402_300_799;

/// Seconds since 1970, with or without a fraction.
pub(crate) fn instant(value: &Value) -> Option<DateTime<Utc>> {
    let Value::Number(number) = value else { return None };
    if let Some(seconds) = number.as_i64() {
        return if (-LAST..=LAST).contains(&seconds) { DateTime::from_timestamp(seconds, 0) } else { None };
    }
    if number.is_u64() {
        return None;
    }
    let seconds = number.as_f64()?;
    let size = Duration::try_from_secs_f64(seconds.abs()).ok()?;
    if size.as_secs() > LAST.unsigned_abs() {
        return None;
    }
    let size = TimeDelta::from_std(size).ok()?;
    let size = if seconds < 0.0 { -size } else { size };
    DateTime::UNIX_EPOCH.checked_add_signed(size)
}

/// Our own format: whole seconds.
pub(crate) fn seconds(at: DateTime<Utc>) -> i64 {
    at.timestamp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn seconds_with_and_without_a_fraction_are_read() {
        let at = |value: Value| instant(&value).map(|at| at.to_rfc3339());
        assert_eq!(at(json!(0)).as_deref(), Some("1970-01-01T00:00:00+00:00"));
        assert_eq!(at(json!(1_700_000_000.5)).as_deref(), Some("2023-11-14T22:13:20.500+00:00"));
        assert_eq!(at(json!(1e3)).as_deref(), Some("1970-01-01T00:16:40+00:00"));
        assert_eq!(at(json!(-1.5)).as_deref(), Some("1969-12-31T23:59:58.500+00:00"));
        assert_eq!(at(json!(LAST)).as_deref(), Some("9999-12-31T23:59:59+00:00"));
    }

    #[test]
    fn invalid_dates_are_none() {
        for value in [
            json!(LAST + 1),
            json!(-LAST - 1),
            json!(u64::MAX),
            json!(i64::MIN),
            json!(1e30),
            json!(-1e30),
            json!(1e12),
            json!(-1e12),
            json!(f64::MAX),
            json!("1700000000"),
            json!(null),
            json!(true),
            json!([1_700_000_000]),
        ] {
            assert_eq!(instant(&value), None, "{value}");
        }
    }
}
