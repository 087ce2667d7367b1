//! Parses and validates trigger requests.

use actix_web::http::header::HeaderName;
use actors::triggers::{Schedule, ScheduleError};
use chrono::{DateTime, Utc};
use kernel::Secret;
use serde_json::{Map, Value};
use store::{CronSettings, MissedFires};
use wire::{FieldError, SignatureScheme, WebhookConfig, WebhookRate};

use super::secrets::Secrets;
use crate::http::fields::{Fields, Parsed};

/// `PUT /api/workflows/{ref}/triggers/cron`: the settings and the next time.
pub(super) fn cron(
    body: &Map<String, Value>,
    now: DateTime<Utc>,
) -> Parsed<(CronSettings, Option<DateTime<Utc>>)> {
    let mut fields = Fields::new(body);
    fields.require("expression");
    let expression = fields.text("expression").map(|text| text.trim().to_owned());
    let timezone = fields.text("timezone").unwrap_or("UTC").to_owned();
    let overlap = fields.flag("overlap").unwrap_or(false);
    let missed = fields.text("missed").map(|text| (text.to_owned(), MissedFires::parse(text)));
    let enabled = fields.flag("enabled").unwrap_or(true);
    if let Some((given, None)) = &missed {
        fields.note(FieldError::new("/missed", "choice", "must be skip or once").suggest(
            match given.as_str() {
                "all" => "once starts one run for all missed fires",
                _ => "skip ignores missed fires; once starts one run for all of them",
            },
        ));
    }
    let schedule = expression.as_deref().and_then(|expression| {
        let read = Schedule::parse(expression, &timezone);
        read.map_err(|errors| errors.into_iter().for_each(|error| fields.note(problem(error)))).ok()
    });
    let next = schedule.as_ref().map(|schedule| schedule.next_after(now));
    if next == Some(None) {
        let never = FieldError::new("/expression", "never", "never fires");
        fields.note(never.suggest("check the day and the month: 30 February does not exist"));
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
            let problem = FieldError::new("/timezone", "timezone", "is not an IANA time zone");
            match near {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None => problem.suggest("such as \"Europe/Berlin\" or \"UTC\""),
            }
        }
    }
}

/// The placeholder for secrets in responses.
pub(super) const MASK: &str = "********";
/// Methods that a webhook may accept.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Bounds for secret lengths in bytes.
const SECRET: std::ops::RangeInclusive<usize> = 16..=1024;
/// Default and bounds for timestamp tolerance in seconds.
const TOLERANCE: (i64, std::ops::RangeInclusive<i64>) = (300, 1..=3_600);

/// `PUT /api/workflows/{ref}/triggers/webhook/config`. Omitted secrets keep their known values.
pub(super) fn webhook(body: &Map<String, Value>, known: &Secrets) -> Parsed<(WebhookConfig, Secrets)> {
    let mut fields = Fields::new(body);
    let allowed_methods = methods(&mut fields);
    let scheme = signature_scheme(&mut fields);
    let shared_secret_header = header(&mut fields, "shared_secret_header");
    let shared = secret(&mut fields, "shared_secret", known.shared.as_ref());
    let mut hmac_header = header(&mut fields, "hmac_header");
    let hmac = secret(&mut fields, "hmac_secret", known.hmac.as_ref());
    let mut hmac_timestamp_header = header(&mut fields, "hmac_timestamp_header");
    if scheme == SignatureScheme::Slack {
        hmac_header = hmac_header.or_else(|| Some("x-slack-signature".to_owned()));
        hmac_timestamp_header =
            hmac_timestamp_header.or_else(|| Some("x-slack-request-timestamp".to_owned()));
    }
    if fields.text("hmac_algorithm").is_some_and(|name| name != "sha256") {
        fields.note(FieldError::new("/hmac_algorithm", "choice", "must be sha256"));
    }
    let delivery_id_header = header(&mut fields, "delivery_id_header");
    let tolerance = fields.whole("hmac_tolerance_seconds", TOLERANCE.1).unwrap_or(TOLERANCE.0);
    let allow_unsigned = fields.flag("allow_unsigned").unwrap_or(false);
    let rate_limit = rate(&mut fields);
    pair(&mut fields, "shared_secret", shared_secret_header.is_some(), shared.is_some());
    pair(&mut fields, "hmac_secret", hmac_header.is_some(), hmac.is_some());
    if hmac_timestamp_header.is_some() && hmac_header.is_none() {
        let alone = "has no effect without hmac_header";
        fields.note(FieldError::new("/hmac_timestamp_header", "incomplete", alone));
    }
    if shared_secret_header.is_none() && hmac_header.is_none() && !allow_unsigned {
        let open = FieldError::new("", "unsigned", "would start runs for any caller who knows the address");
        fields.note(open.suggest("configure hmac_header and hmac_secret, or set \"allow_unsigned\": true"));
    }
    let problems = fields.finish();
    if !problems.is_empty() {
        return Err(problems);
    }
    // Without its header, a secret is not required from callers.
    let secrets = Secrets {
        shared: shared.filter(|_| shared_secret_header.is_some()),
        hmac: hmac.filter(|_| hmac_header.is_some()),
    };
    let config = WebhookConfig {
        allowed_methods,
        shared_secret_header,
        hmac_header,
        hmac_algorithm: "sha256".to_owned(),
        hmac_timestamp_header,
        hmac_tolerance_seconds: u32::try_from(tolerance).unwrap_or_default(),
        delivery_id_header,
        signature_scheme: scheme,
        allow_unsigned,
        rate_limit,
    };
    Ok((config, secrets))
}

fn methods(fields: &mut Fields<'_>) -> Vec<String> {
    let Some(given) = fields.texts("allowed_methods") else { return vec!["POST".to_owned()] };
    let mut methods: Vec<String> = Vec::new();
    if given.is_empty() {
        fields.note(FieldError::new("/allowed_methods", "length", "must name at least one method"));
    }
    for (pointer, method) in given {
        let method = method.to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            let choice = format!("must be one of {}", METHODS.join(", "));
            fields.note(FieldError::new(pointer, "choice", choice));
        } else if !methods.contains(&method) {
            methods.push(method);
        }
    }
    methods
}

fn signature_scheme(fields: &mut Fields<'_>) -> SignatureScheme {
    match fields.text("signature_scheme") {
        Some("slack") => SignatureScheme::Slack,
        Some("plain") | None => SignatureScheme::Plain,
        Some(_) => {
            fields.note(FieldError::new("/signature_scheme", "choice", "must be plain or slack"));
            SignatureScheme::Plain
        }
    }
}

/// A header name in lower case.
fn header(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let text = fields.text(name)?;
    match HeaderName::from_bytes(text.as_bytes()) {
        Ok(header) => Some(header.as_str().to_owned()),
        Err(_) => {
            fields.note(FieldError::new(format!("/{name}"), "format", "must be the name of a header"));
            None
        }
    }
}

fn secret(fields: &mut Fields<'_>, name: &'static str, known: Option<&Secret>) -> Option<Secret> {
    let Some(given) = fields.text(name).filter(|given| *given != MASK) else { return known.cloned() };
    if !SECRET.contains(&given.len()) || !given.bytes().all(|byte| byte.is_ascii_graphic()) {
        let (least, most) = (SECRET.start(), SECRET.end());
        let message = format!("must have {least} to {most} visible ASCII characters");
        fields.note(FieldError::new(format!("/{name}"), "format", message));
    }
    Some(Secret::from(given.to_owned()))
}

/// A secret and its header require each other. A known secret without its header is removed.
fn pair(fields: &mut Fields<'_>, name: &'static str, header: bool, secret: bool) {
    if header && !secret {
        fields.note(FieldError::new(format!("/{name}"), "required", "is required with its header"));
    } else if !header && fields.has(name) {
        let alone = "has no effect without its header";
        fields.note(FieldError::new(format!("/{name}"), "incomplete", alone));
    }
}

fn rate(fields: &mut Fields<'_>) -> Option<WebhookRate> {
    let mut inner = Fields::new(fields.object("rate_limit")?);
    inner.require("limit");
    inner.require("interval_seconds");
    let limit = inner.whole("limit", 1..=10_000);
    let interval = inner.whole("interval_seconds", 1..=86_400);
    for problem in inner.finish() {
        fields.note(FieldError { pointer: format!("/rate_limit{}", problem.pointer), ..problem });
    }
    let (limit, interval) = (u32::try_from(limit?).ok()?, u32::try_from(interval?).ok()?);
    Some(WebhookRate { limit, interval_seconds: interval })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(body: Value) -> Parsed<(CronSettings, Option<DateTime<Utc>>)> {
        cron(body.as_object().unwrap(), "2026-11-22T13:05:00Z".parse().unwrap())
    }

    fn problems(body: Value) -> Vec<String> {
        let line = |problem: FieldError| format!("{} {}", problem.pointer, problem.code);
        read(body).err().unwrap_or_default().into_iter().map(line).collect()
    }

    #[test]
    fn missing_members_have_defaults() {
        let (settings, next) = read(json!({"expression": " 0 9 * * * "})).ok().unwrap();
        assert_eq!((settings.expression.as_str(), settings.timezone.as_str()), ("0 9 * * *", "UTC"));
        assert!(!settings.overlap && settings.enabled && settings.missed == MissedFires::Skip);
        assert_eq!(next.unwrap().to_rfc3339(), "2026-11-23T09:00:00+00:00");
        let (_, next) = read(json!({"expression": "0 9 * * *", "enabled": false})).ok().unwrap();
        assert_eq!(next, None);
    }

    #[test]
    fn every_problem_is_reported() {
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
