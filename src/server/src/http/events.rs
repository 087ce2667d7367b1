//! Serves a stream as a response body.

use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use actors::streams::{Reader, ReaderError, Readout};
use futures_util::future::LocalBoxFuture;
use futures_util::stream::unfold;
use futures_util::{Stream, StreamExt, TryStreamExt};
use store::StoredStream;
use uuid::Uuid;
use wire::chat::Dialect;
use wire::{ErrorCode, FieldError};

use super::chat::StreamPlace;
use super::error::{ApiError, ApiResult};
use super::place::{StreamPosition, Unknown, place, place_in_latest};
use super::thread_ids::ThreadIds;
use super::{App, ClientEnd};

/// The interval between keep-alive pings on an idle stream.
const PING: Duration = Duration::from_secs(10);
/// Tells the client to reconnect soon, to any available instance.
const RECONNECT: &str = "retry: 1000\n: reconnect\n\n";

/// The response headers of a stream; chat streams add their id.
pub(super) fn headers() -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"));
    response
}

/// A chat stream reader.
pub(super) struct ChatReader {
    /// Held while the stream is read.
    pub(super) place: StreamPlace,
    /// Signals that the client has left. A client that only closes its write side counts as gone.
    pub(super) client_end: ClientEnd,
}

impl ChatReader {
    pub(super) fn new(place: StreamPlace, request: &HttpRequest) -> Self {
        Self { place, client_end: ClientEnd::for_request(request) }
    }
}

/// A caller's view of run events.
pub(super) struct RunView {
    pub(super) ids: ThreadIds,
    /// The id that replaces the stream's id in event ids.
    pub(super) named: Uuid,
    /// Completes when the caller loses read access.
    pub(super) until: LocalBoxFuture<'static, ()>,
}

/// Serves a stored stream after the last event received. Responds with 204 after the last one.
pub(super) async fn serve(
    app: &App,
    stream: &StoredStream,
    request: &HttpRequest,
    unknown: Unknown,
    head: HttpResponseBuilder,
    held: Option<ChatReader>,
) -> ApiResult<HttpResponse> {
    serve_from(app, stream, place(request, stream.id, unknown)?, head, held, None).await
}

/// Serves a run's stream, restricted to the reader's view.
pub(super) async fn serve_run(
    app: &App,
    stream: &StoredStream,
    request: &HttpRequest,
    view: RunView,
) -> ApiResult<HttpResponse> {
    let place = place(request, view.named, Unknown::Refused)?;
    serve_from(app, stream, place, headers(), None, Some(view)).await
}

/// Like [`serve`], for the latest stream: a position in another stream counts as the start of this one.
pub(super) async fn serve_latest(
    app: &App,
    stream: &StoredStream,
    request: &HttpRequest,
    head: HttpResponseBuilder,
    held: Option<ChatReader>,
) -> ApiResult<HttpResponse> {
    serve_from(app, stream, place_in_latest(request, stream.id)?, head, held, None).await
}

async fn serve_from(
    app: &App,
    stream: &StoredStream,
    place: StreamPosition,
    mut head: HttpResponseBuilder,
    held: Option<ChatReader>,
    view: Option<RunView>,
) -> ApiResult<HttpResponse> {
    if app.chat().all_seen(stream, place.after).await? {
        return Ok(HttpResponse::NoContent().finish());
    }
    // Readers receive an event only after it is stored. A client that resumes past the last event would wait for the
    // end and miss everything before.
    if !app.chat().reaches(stream, place.after).await? {
        let message = "the stream has no event with this id yet; resume after an event that you received";
        let problem = FieldError::new(place.pointer, "range", message);
        return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
    }
    let reader = app.chat().open(stream.id, place.after);
    let reader = if stream.dialect.is_some() { reader.marking_live() } else { reader };
    let body = body(reader, app, stream.dialect, held);
    let Some(RunView { ids, named, until }) = view else { return Ok(head.streaming(body)) };
    let stored = stream.id;
    let visible = body.map_ok(move |frames| match (ids, named == stored) {
        (ThreadIds::Shown, true) => frames,
        _ => visible(frames, ids, &format!("id: {stored}."), &format!("id: {named}.")),
    });
    Ok(head.streaming(visible.take_until(until)))
}

/// Removes ids that the reader may not see from frames.
fn visible(frames: Bytes, ids: ThreadIds, stored: &str, named: &str) -> Bytes {
    let Ok(text) = std::str::from_utf8(&frames) else { return frames };
    ids.text(&text.replace(stored, named)).into_owned().into()
}

/// The stream body: events, pings between them, and a reconnect request at shutdown. The run does not depend on it,
/// since the body only reads. `dialect` is set for chat streams.
pub(super) fn body(
    reader: Reader,
    app: &App,
    dialect: Option<Dialect>,
    held: Option<ChatReader>,
) -> impl Stream<Item = Result<Bytes, ReaderError>> + use<> {
    let (clock, closing) = (app.clock().clone(), app.streams_closing().clone());
    let replaced = held.as_ref().map(|held| held.place.replaced()).unwrap_or_default();
    let client_end = held.as_ref().map(|held| held.client_end.clone()).unwrap_or_default();
    unfold(Some(reader), move |reader| {
        let _ = &held;
        let (clock, closing) = (clock.clone(), closing.clone());
        let (replaced, client_end) = (replaced.clone(), client_end.clone());
        async move {
            let mut reader = reader?;
            let read = tokio::select! {
                biased;
                // Another reader of the session has taken its slot.
                () = replaced.cancelled() => return None,
                () = client_end.reached() => return None,
                read = reader.next() => Some(read),
                () = closing.cancelled() => None,
                () = clock.sleep(PING) => {
                    return Some((Ok(Bytes::from_static(wire::sse::PING.as_bytes())), Some(reader)));
                }
            };
            match read {
                Some(Ok(Readout::Frames(frames))) => Some((Ok(frames), Some(reader))),
                Some(Ok(Readout::Live)) => {
                    Some((Ok(Bytes::from_static(live(dialect).as_bytes())), Some(reader)))
                }
                Some(Ok(Readout::End)) => None,
                Some(Err(error)) => {
                    // The client resumes after the last event it received.
                    tracing::warn!(%error, stream = %reader.stream(), "stream interrupted");
                    Some((Err(error), None))
                }
                None => Some((Ok(Bytes::from_static(RECONNECT.as_bytes())), None)),
            }
        }
    })
}

/// The marker that precedes live events.
const fn live(dialect: Option<Dialect>) -> &'static str {
    match dialect {
        Some(Dialect::Interface) => wire::sse::LIVE_FRAME,
        Some(Dialect::Chatkit) | None => wire::sse::LIVE_COMMENT,
    }
}
