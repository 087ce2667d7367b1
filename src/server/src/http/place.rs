//! Parses the position from which a client resumes a stream.

use actix_web::HttpRequest;
use uuid::Uuid;
use wire::{FieldError, sse};

use super::error::{ApiError, ApiResult};
use super::query::Params;

/// The position from which a client resumes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct StreamPosition {
    /// The number of the last event received; 0 for none.
    pub(super) after: u64,
    /// The header or parameter that gave the position, for error messages.
    pub(super) pointer: &'static str,
}

/// How to handle unknown query parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// Ignored, as everywhere in the chat API.
    Ignored,
    /// Refused, as everywhere else.
    Refused,
}

/// Returns the position of the last event received. It comes from the `Last-Event-ID` header, which browsers send
/// automatically, or from `?after=`. If both are given, the header wins because it is newer.
pub(super) fn place(request: &HttpRequest, stream: Uuid, unknown: Unknown) -> ApiResult<StreamPosition> {
    read(request, stream, unknown).or_else(|problems| {
        ApiError::refuse(problems)?;
        Ok(START)
    })
}

/// Like [`place`], but a position in another stream counts as the start of this one.
pub(super) fn place_in_latest(request: &HttpRequest, stream: Uuid) -> ApiResult<StreamPosition> {
    read(request, stream, Unknown::Ignored).or_else(|mut problems| {
        problems.retain(|problem| problem.code != OTHER_STREAM);
        ApiError::refuse(problems)?;
        Ok(START)
    })
}

fn read(request: &HttpRequest, stream: Uuid, unknown: Unknown) -> Result<StreamPosition, Vec<FieldError>> {
    let mut problems = Vec::new();
    let headers: Vec<_> = request.headers().get_all("last-event-id").collect();
    let header = match headers.as_slice() {
        [] => None,
        [id] => {
            // A header that is not text cannot be an event id.
            let id = id.to_str().unwrap_or("?").trim();
            (!id.is_empty()).then(|| event_of(id, stream, false, LAST_EVENT_ID))
        }
        _ => Some(Err(FieldError::new(LAST_EVENT_ID, "repeated", "may be given only once"))),
    };
    let mut query = Params::from_request(request);
    let after = query.text("after").filter(|after| !after.is_empty());
    let after = after.map(|id| event_of(&id, stream, true, AFTER));
    problems.extend(match unknown {
        Unknown::Ignored => query.finish_leniently(),
        Unknown::Refused => query.finish(),
    });
    let mut first = None;
    for (read, pointer) in [(header, LAST_EVENT_ID), (after, AFTER)] {
        match read {
            Some(Ok(after)) => first = first.or(Some(StreamPosition { after, pointer })),
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
    }
    if problems.is_empty() { Ok(first.unwrap_or(START)) } else { Err(problems) }
}

const LAST_EVENT_ID: &str = "/Last-Event-ID";
const AFTER: &str = "/after";
const OTHER_STREAM: &str = "other_stream";
const START: StreamPosition = StreamPosition { after: 0, pointer: AFTER };

/// Parses the number in `<stream>.<number>`, or a bare number if `bare` is set.
fn event_of(id: &str, stream: Uuid, bare: bool, pointer: &str) -> Result<u64, FieldError> {
    let name = stream.to_string();
    // Without this check, `+1` would parse too.
    let digits = bare && id.bytes().all(|b| b.is_ascii_digit());
    let number = sse::parse_event_id(id, &name).or_else(|| digits.then(|| id.parse().ok()).flatten());
    number.ok_or_else(|| {
        let of_another = id.rsplit_once('.').and_then(|(other, _)| Uuid::parse_str(other).ok());
        if of_another.is_some_and(|other| other != stream) {
            return FieldError::new(pointer, OTHER_STREAM, "is an event of another stream")
                .suggest(format!("an id of this one begins with {name}."));
        }
        let form = if bare { format!("a number or {name}.<number>") } else { format!("{name}.<number>") };
        FieldError::new(pointer, "format", format!("must be {form}"))
    })
}
