//! The bodies of requests about triggers, read and checked.

use actors::triggers::{Schedule, ScheduleError};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use store::{CronSettings, MissedFires};
use wire::FieldError;

use crate::http::fields::Fields;

/// A request, or every problem of it.
type Read<T> = Result<T, Vec<FieldError>>;

/// `PUT /api/workflows/{ref}/triggers/cron`: what to do, and when next.
pub(super) fn cron(
    body: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Read<(CronSettings, Option<DateTime<Utc>>)> {
    let mut fields = Fields::of(body);
    fields.require("expression");
    let expression = fields.text("expression").map(|text| text.trim().to_owned());
    let timezone = fields.text("timezone").unwrap_or("UTC").to_owned();
    let overlap = fields.flag("overlap").unwrap_or(false);
    let missed = fields.text("missed").map(|text| (text.to_owned(), MissedFires::parse(text)));
    let enabled = fields.flag("enabled").unwrap_or(true);
    if let Some((given, None)) = &missed {
        fields.note(FieldError::new("/missed", "choice", "must be skip or once").suggest(
            match given.as_str() {
                "all" => "once begins one run for all that were missed",
                _ => "skip leaves missed fires out; once begins one run for all of them",
            },
        ));
    }
    let schedule = expression.as_deref().and_then(|expression| {
        let read = Schedule::parse(expression, &timezone);
        read.map_err(|errors| errors.into_iter().for_each(|error| fields.note(problem(error)))).ok()
    });
    let next = schedule.as_ref().map(|schedule| schedule.next_after(now));
    if next == Some(None) {
        let never = FieldError::new("/expression", "never", "fires at no time that there is");
        fields.note(never.suggest("look at the day and the month: 30 February does not come"));
    }
    let problems = fields.finish();
    match (expression, next.flatten()) {
        (Some(expression), Some(next)) if problems.is_empty() => {
            let missed = missed.and_then(|(_, missed)| missed).unwrap_or_default();
            let next = enabled.then_some(next);
            Ok((CronSettings { expression, timezone, overlap, missed, enabled }, next))
        }
        _ => Err(problems),
    }
}

fn problem(error: ScheduleError) -> FieldError {
    match error {
        ScheduleError::Expression(text) => FieldError::new("/expression", "cron", text)
            .suggest("minute hour day-of-month month day-of-week, such as \"0 9 * * MON-FRI\""),
        ScheduleError::Zone(near) => {
            let problem = FieldError::new("/timezone", "timezone", "is no IANA time zone");
            match near {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None => problem.suggest("such as \"Europe/Berlin\" or \"UTC\""),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Read<(CronSettings, Option<DateTime<Utc>>)> {
        cron(body.as_object().unwrap(), "2026-11-22T13:05:00Z".parse().unwrap())
    }

    fn problems(body: Value) -> Vec<String> {
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read(body).err().unwrap_or_default().into_iter().map(line).collect()
    }

    #[test]
    fn what_is_not_said_is_as_usual() {
        let (settings, next) = read(json!({"expression": " 0 9 * * * "})).ok().unwrap();
        assert_eq!((settings.expression.as_str(), settings.timezone.as_str()), ("0 9 * * *", "UTC"));
        assert!(!settings.overlap && settings.enabled && settings.missed == MissedFires::Skip);
        assert_eq!(next.unwrap().to_rfc3339(), "2026-11-23T09:00:00+00:00");
        let (_, next) = read(json!({"expression": "0 9 * * *", "enabled": false})).ok().unwrap();
        assert_eq!(next, None);
    }

    #[test]
    fn every_problem_is_told() {
        assert_eq!(problems(json!({})), ["/expression required"]);
        assert_eq!(
            problems(
                json!({"expression": "x", "timezone": "Nowhere", "missed": "all", "overlap": 1, "cron": 1})
            ),
            [
                "/overlap type",
                "/missed choice",
                "/expression cron",
                "/timezone timezone",
                "/cron unknown_field"
            ]
        );
        assert_eq!(problems(json!({"expression": "0 0 30 2 *"})), ["/expression never"]);
    }
}
