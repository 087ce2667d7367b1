//! The wait that a server requests before a retry.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::header::{HeaderMap, RETRY_AFTER};

/// Maximum accepted wait.
const LONGEST: Duration = Duration::from_secs(300);

/// Returns the wait that the headers request, at most five minutes: `retry-after-ms`, or `Retry-After` as seconds or a
/// date.
#[must_use]
pub fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number >= 0.0);
    let wait = if let Some(millis) = text("retry-after-ms").and_then(number) {
        Duration::try_from_secs_f64(millis / 1000.0).unwrap_or(LONGEST)
    } else {
        let given = text(RETRY_AFTER.as_str())?;
        if let Some(seconds) = number(given) {
            Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST)
        } else {
            let until = DateTime::parse_from_rfc2822(given).ok()?;
            (until.to_utc() - now).to_std().unwrap_or_default()
        }
    };
    Some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(name: &'static str, value: &str) -> Option<Duration> {
        let now = DateTime::from_timestamp(784_111_777, 0).unwrap();
        retry_after(&HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]), now)
    }

    #[test]
    fn retry_after_is_parsed_in_every_form_with_a_limit() {
        for (name, value, seconds) in [
            ("retry-after", "7", Some(7.0)),
            ("retry-after", " 1.5 ", Some(1.5)),
            ("retry-after-ms", "250", Some(0.25)),
            ("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT", Some(30.0)),
            ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", Some(0.0)),
            ("retry-after", "86400", Some(300.0)),
            ("retry-after", "1e30", Some(300.0)),
            ("retry-after", "Fri, 31 Dec 2100 23:59:59 GMT", Some(300.0)),
            ("retry-after", "soon", None),
            ("retry-after", "-5", None),
            ("retry-after", "NaN", None),
            ("x-other", "7", None),
        ] {
            assert_eq!(wait(name, value), seconds.map(Duration::from_secs_f64), "{name}: {value}");
        }
    }
}
