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
    let mut query = Params::of(&request);
    let after = query.text("after");
    // What the chat does not know it ignores, here too.
    ApiError::refuse(query.finish_leniently())?;
    let after = seen(&request, after.as_deref(), stream.id)?;
    if app.chat().all_seen(&stream, after).await? {
        return Ok(HttpResponse::NoContent().finish());
    }
    let reader = app.chat().open(stream.id, after);
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

/// The last event that the client has seen: the header a browser sends by itself, or `?after=`.
fn seen(request: &HttpRequest, after: Option<&str>, stream: Uuid) -> ApiResult<u64> {
    let refuse = |pointer: &str, message: String| {
        let problem = FieldError::new(pointer, "format", message);
        ApiError::problems(ErrorCode::InvalidRequest, vec![problem])
    };
    let header = request.headers().get("last-event-id").map(|id| id.to_str().unwrap_or_default());
    if let Some(id) = header.filter(|id| !id.is_empty()) {
        let message = || format!("Last-Event-ID must be {stream}.<number>");
        return sse::parse_event_id(id, &stream.to_string())
            .ok_or_else(|| refuse("/Last-Event-ID", message()));
    }
    match after {
        None | Some("") => Ok(0),
        Some(text) => {
            // Only digits: parsing alone would take `+1` too.
            let digits = text.bytes().all(|b| b.is_ascii_digit());
            let plain = || digits.then(|| text.parse().ok()).flatten();
            let number = sse::parse_event_id(text, &stream.to_string()).or_else(plain);
            number.ok_or_else(|| refuse("/after", format!("after must be a number or {stream}.<number>")))
        }
    }
}
