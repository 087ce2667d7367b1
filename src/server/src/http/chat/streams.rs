//! Resumes streams at any event, and stops turns.

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use kernel::ThreadId;
use store::StoredStream;
use uuid::Uuid;
use wire::{ErrorCode, StopAnswer};

use super::access::ChatAccess;
use crate::http::error::{ApiError, ApiResult};
use crate::http::events::{self, ChatReader};
use crate::http::guard::Anyone;
use crate::http::place::Unknown;
use crate::http::{App, body};

/// Resumes after the last event that the client received. Responds with 204 after the last one.
pub(super) async fn read(app: Anyone, id: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let (stream, access) = open(&app, &id, &request).await?;
    let reader = reader(&app, &access, &stream, &request)?;
    events::serve(&app, &stream, &request, Unknown::Ignored, super::headers(stream.id), reader).await
}

/// Serves the stream of the thread's running turn. Responds with 204 if none is running.
pub(super) async fn running(app: Anyone, id: Path<String>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound);
    let id = ThreadId::parse(&id).map_err(|_| not_found())?;
    let thread = app.chat().thread(id).await?.ok_or_else(not_found)?;
    let access = ChatAccess::judge(&app, &request, thread.workflow_id).await?;
    access.check_owner(&app, &thread).await?;
    match app.chat().running(id).await? {
        Some(stream) => {
            let reader = reader(&app, &access, &stream, &request)?;
            events::serve_latest(&app, &stream, &request, super::headers(stream.id), reader).await
        }
        None => Ok(HttpResponse::NoContent().finish()),
    }
}

/// Stops the turn. Idempotent.
pub(super) async fn stop(
    app: Anyone,
    id: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<StopAnswer>> {
    let (stream, access) = open(&app, &id, &request).await?;
    access.check_origin(&app, &request)?;
    let status = app.chat().stop(&stream).await?;
    // The body is ignored, but leaving it unread would close the connection.
    let _ = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await;
    Ok(Json(StopAnswer { status }))
}

fn reader(
    app: &App,
    access: &ChatAccess,
    stream: &StoredStream,
    request: &HttpRequest,
) -> ApiResult<Option<ChatReader>> {
    let session = access.session(stream.thread_id.map(|thread| thread.to_string()).as_deref());
    let place = app.chat_limits().stream(session.as_deref(), Some(stream.id))?;
    Ok(Some(ChatReader::new(place, request)))
}

/// Opens a stream under the rules of the chat request that started it. Run streams are not found here.
async fn open(app: &App, id: &str, request: &HttpRequest) -> ApiResult<(StoredStream, ChatAccess)> {
    let not_found = || ApiError::new(ErrorCode::StreamNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let stream = app.chat().stream(id).await?.filter(|stream| stream.dialect.is_some());
    let stream = stream.ok_or_else(not_found)?;
    let access = ChatAccess::judge(app, request, stream.workflow_id).await?;
    if let Some(thread) = stream.thread_id {
        access.thread(app, thread).await.map_err(hidden)?;
    }
    Ok((stream, access))
}

/// Hides the stream from a caller who may not see its thread. Database errors stay errors: a client that received "not
/// found" instead would never reconnect.
fn hidden(error: ApiError) -> ApiError {
    match error.code() {
        ErrorCode::ThreadNotFound => ApiError::new(ErrorCode::StreamNotFound),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_missing_thread_hides_its_stream() {
        let code = |code| hidden(ApiError::new(code)).code();
        assert_eq!(code(ErrorCode::ThreadNotFound), ErrorCode::StreamNotFound);
        assert_eq!(code(ErrorCode::DatabaseUnavailable), ErrorCode::DatabaseUnavailable);
    }
}
