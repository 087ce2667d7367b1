//! Streams: read again from any event on, and stopped.

use actix_web::web::{Data, Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use store::StoredStream;
use uuid::Uuid;
use wire::{ErrorCode, FieldError, StopAnswer, sse};

use super::access::Access;
use super::events;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::query::Params;

/// Goes on exactly behind the last event that was seen; 204 when there is none.
pub(super) async fn read(app: Data<App>, id: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let (stream, _) = open(&app, &id, &request).await?;
    let place = place(&request, stream.id)?;
    if app.chat().all_seen(&stream, place.after).await? {
        return Ok(HttpResponse::NoContent().finish());
    }
    // Nobody is told of an event before it is stored. Who asks for more than there is would wait for the end and miss
    // everything until then.
    if !app.chat().reaches(&stream, place.after).await? {
        let message = "the stream has not got that far; go on behind an event that it has sent";
        let problem = FieldError::new(place.pointer, "range", message);
        return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
    }
    let reader = app.chat().open(stream.id, place.after);
    Ok(events::headers(stream.id).streaming(events::body(reader, &app)))
}

/// Stops the turn; as often as one likes.
pub(super) async fn stop(
    app: Data<App>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<StopAnswer>> {
    let (stream, access) = open(&app, &id, &request).await?;
    access.check_origin(&app, &request)?;
    let status = app.chat().stop(&stream).await?;
    Ok(Json(StopAnswer { status }))
}

/// The stream, under the rules of the chat request that began it.
async fn open(app: &App, id: &str, request: &HttpRequest) -> ApiResult<(StoredStream, Access)> {
    let not_found = || ApiError::new(ErrorCode::StreamNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let stream = app.chat().stream(id).await?.ok_or_else(not_found)?;
    let access = Access::judge(app, request, stream.workflow_id).await?;
    if let Some(thread) = stream.thread_id {
        access.thread(app, thread).await.map_err(|_| not_found())?;
    }
    Ok((stream, access))
}

/// Where a client goes on.
#[derive(Debug, PartialEq, Eq)]
struct Place {
    /// The number of the last event it has seen; 0 for none.
    after: u64,
    /// Who says so.
    pointer: &'static str,
}

/// The last event that the client has seen: the header that a browser sends by itself, or `?after=`. Where both are
/// given, the header is the newer one.
fn place(request: &HttpRequest, stream: Uuid) -> ApiResult<Place> {
    let mut problems = Vec::new();
    let headers: Vec<_> = request.headers().get_all("last-event-id").collect();
    let header = match headers.as_slice() {
        [] => None,
        [id] => {
            // What is no text is no id either.
            let id = id.to_str().unwrap_or("?").trim();
            (!id.is_empty()).then(|| event_of(id, stream, false, LAST_EVENT_ID))
        }
        _ => Some(Err(FieldError::new(LAST_EVENT_ID, "repeated", "may be given once"))),
    };
    let mut query = Params::of(request);
    let after = query.text("after").filter(|after| !after.is_empty());
    let after = after.map(|id| event_of(&id, stream, true, AFTER));
    // What the chat does not know it ignores, here too.
    problems.extend(query.finish_leniently());
    let mut first = None;
    for (read, pointer) in [(header, LAST_EVENT_ID), (after, AFTER)] {
        match read {
            Some(Ok(after)) => first = first.or(Some(Place { after, pointer })),
            Some(Err(problem)) => problems.push(problem),
            None => {}
        }
    }
    ApiError::refuse(problems)?;
    Ok(first.unwrap_or(Place { after: 0, pointer: AFTER }))
}

const LAST_EVENT_ID: &str = "/Last-Event-ID";
const AFTER: &str = "/after";

/// The number in `<stream>.<number>`, or the number alone where that will do.
fn event_of(id: &str, stream: Uuid, bare: bool, pointer: &str) -> Result<u64, FieldError> {
    let name = stream.to_string();
    // Parsing alone would take `+1` too.
    let digits = bare && id.bytes().all(|b| b.is_ascii_digit());
    let number = sse::parse_event_id(id, &name).or_else(|| digits.then(|| id.parse().ok()).flatten());
    number.ok_or_else(|| {
        let of_another = id.rsplit_once('.').and_then(|(other, _)| Uuid::parse_str(other).ok());
        if of_another.is_some_and(|other| other != stream) {
            return FieldError::new(pointer, "other_stream", "is an event of another stream")
                .suggest(format!("an id of this one begins with {name}."));
        }
        let form = if bare { format!("a number or {name}.<number>") } else { format!("{name}.<number>") };
        FieldError::new(pointer, "format", format!("must be {form}"))
    })
}
