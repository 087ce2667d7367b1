//! Parses dataset requests: JSON with the cases or with their source, JSON lines, or CSV.

use actix_web::HttpMessage;
use actors::kinds::training::DatasetContent;
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};
use store::{FeedbackFilter, RunState, RunsFilter};
use uuid::Uuid;
use wire::{ErrorCode, FieldError};

use crate::http::body::{self, CASES_LIMIT};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::WorkflowsWrite;
use crate::http::query::Params;

/// Maximum characters in a name.
const LONGEST_NAME: usize = 128;
/// Default and maximum runs that become cases.
const RUNS: usize = 100;
const MOST_RUNS: i64 = 1_000;

/// The source of a version's cases.
pub(super) enum CaseSource {
    /// The request itself.
    Given(DatasetContent),
    /// Feedback.
    Feedback(FeedbackFilter),
    /// Ended runs, up to a maximum.
    Runs(RunsFilter, usize),
}

/// Reads the name and cases of a new dataset.
pub(super) async fn create(change: &Change<WorkflowsWrite, CASES_LIMIT>) -> ApiResult<(String, CaseSource)> {
    if let Some(content) = text(change)? {
        let mut query = Params::from_request(change.request());
        let given = query.text("name").map(|name| ("name".to_owned(), Value::String(name)));
        let given = Map::from_iter(given);
        let mut fields = Fields::new(&given);
        let name = name_of(&mut fields);
        for problem in fields.finish() {
            query.note("name", &problem.code, problem.message);
        }
        ApiError::refuse(query.finish())?;
        return Ok((name.unwrap_or_default(), CaseSource::Given(content)));
    }
    ApiError::refuse(Params::from_request(change.request()).finish())?;
    let mut members = body::large_object(change.request(), change.bytes().clone()).await?;
    let cases = members.shift_remove("cases");
    let mut fields = Fields::new(&members);
    let name = name_of(&mut fields);
    let source = source(&mut fields, cases);
    of_fields(fields, name.zip(source))
}

/// Reads a version's cases.
pub(super) async fn version(change: &Change<WorkflowsWrite, CASES_LIMIT>) -> ApiResult<CaseSource> {
    ApiError::refuse(Params::from_request(change.request()).finish())?;
    if let Some(content) = text(change)? {
        return Ok(CaseSource::Given(content));
    }
    let mut members = body::large_object(change.request(), change.bytes().clone()).await?;
    let cases = members.shift_remove("cases");
    let mut fields = Fields::new(&members);
    let source = source(&mut fields, cases);
    of_fields(fields, source)
}

fn of_fields<T>(fields: Fields<'_>, read: Option<T>) -> ApiResult<T> {
    let problems = fields.finish();
    match read {
        Some(read) if problems.is_empty() => Ok(read),
        _ => Err(ApiError::problems(ErrorCode::InvalidRequest, problems)),
    }
}

/// Returns the body if it is JSON lines or CSV.
fn text(change: &Change<WorkflowsWrite, CASES_LIMIT>) -> ApiResult<Option<DatasetContent>> {
    let make = match change.request().content_type().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => DatasetContent::Lines,
        "text/csv" => DatasetContent::Csv,
        "application/json" => return Ok(None),
        _ if change.bytes().is_empty() => return Ok(None),
        _ => {
            let message = "Send the cases as application/json, application/x-ndjson or text/csv.";
            return Err(ApiError::new(ErrorCode::UnsupportedMediaType).with_message(message));
        }
    };
    let text = std::str::from_utf8(change.bytes()).map_err(|error| {
        let message = format!("is not UTF-8 after {} bytes", error.valid_up_to());
        ApiError::problems(ErrorCode::InvalidRequest, vec![FieldError::new("", "encoding", message)])
    })?;
    // Spreadsheets start their files with a byte order mark.
    Ok(Some(make(text.strip_prefix('\u{feff}').unwrap_or(text).to_owned())))
}

fn name_of(fields: &mut Fields<'_>) -> Option<String> {
    fields.require("name");
    let name = fields.line("name", 1, LONGEST_NAME)?;
    // Clients resolve these as path segments.
    if matches!(name.as_str(), "." | "..") {
        fields.note(FieldError::new("/name", "format", "must not be '.' or '..'"));
    }
    if Uuid::parse_str(&name).is_ok() {
        fields.note(FieldError::new(
            "/name",
            "format",
            "must not be a UUID: datasets are also found by their ids",
        ));
    }
    Some(name)
}

/// Reads `cases` or `from`.
fn source(fields: &mut Fields<'_>, cases: Option<Value>) -> Option<CaseSource> {
    fields.pass_over(&["cases"]);
    let from = fields.object("from");
    match (cases.filter(|cases| !cases.is_null()), from) {
        (Some(cases), None) => Some(CaseSource::Given(DatasetContent::List(cases))),
        (Some(_), Some(_)) => {
            fields.note(FieldError::new("/from", "conflict", "cannot be combined with 'cases'"));
            None
        }
        (None, Some(from)) => origin(fields, from),
        (None, None) => {
            fields.require("cases");
            None
        }
    }
}

fn origin(fields: &mut Fields<'_>, from: &Map<String, Value>) -> Option<CaseSource> {
    let mut inner = Fields::new(from);
    let (feedback, runs) = (inner.object("feedback"), inner.object("runs"));
    let mut problems = inner.finish();
    let source = match (feedback, runs) {
        (Some(feedback), None) => Some(of_feedback(feedback, &mut problems)),
        (None, Some(runs)) => Some(of_runs(runs, &mut problems)),
        (Some(_), Some(_)) => {
            problems.push(FieldError::new("/runs", "conflict", "cannot be combined with 'feedback'"));
            None
        }
        (None, None) => {
            if problems.is_empty() {
                problems.push(FieldError::new("", "required", "needs 'feedback' or 'runs'"));
            }
            None
        }
    };
    note_below(fields, "/from", problems);
    source
}

fn note_below(fields: &mut Fields<'_>, at: &str, problems: Vec<FieldError>) {
    for problem in problems {
        fields.note(FieldError { pointer: format!("{at}{}", problem.pointer), ..problem });
    }
}

fn of_feedback(members: &Map<String, Value>, problems: &mut Vec<FieldError>) -> CaseSource {
    let mut fields = Fields::new(members);
    let (from, to) = period(&mut fields);
    let filter = FeedbackFilter {
        kind: fields.one_of("kind", &["positive", "negative"]).map(str::to_owned),
        from,
        to,
        version: fields.whole("version", 1..=i32::MAX.into()).and_then(|number| i32::try_from(number).ok()),
    };
    extend_below(problems, "/feedback", fields);
    CaseSource::Feedback(filter)
}

fn of_runs(members: &Map<String, Value>, problems: &mut Vec<FieldError>) -> CaseSource {
    let mut fields = Fields::new(members);
    let (from, to) = period(&mut fields);
    let ended = [RunState::Succeeded, RunState::Failed, RunState::Cancelled].map(RunState::as_str);
    let status = fields.one_of("status", &ended).and_then(RunState::from_name);
    let limit = fields.whole("limit", 1..=MOST_RUNS).and_then(|limit| usize::try_from(limit).ok());
    let filter = RunsFilter {
        statuses: vec![status.unwrap_or(RunState::Succeeded)],
        from,
        to,
        ..RunsFilter::default()
    };
    extend_below(problems, "/runs", fields);
    CaseSource::Runs(filter, limit.unwrap_or(RUNS))
}

fn period(fields: &mut Fields<'_>) -> (Option<DateTime<Utc>>, Option<DateTime<Utc>>) {
    (fields.time("from"), fields.time("to"))
}

fn extend_below(problems: &mut Vec<FieldError>, at: &str, fields: Fields<'_>) {
    let at = |problem: FieldError| FieldError { pointer: format!("{at}{}", problem.pointer), ..problem };
    problems.extend(fields.finish().into_iter().map(at));
}
