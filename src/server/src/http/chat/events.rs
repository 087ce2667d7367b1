//! A stream as the body of an answer.

use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpResponse, HttpResponseBuilder};
use actors::publish::{Reader, ReaderError, Readout};
use futures_util::Stream;
use futures_util::stream::unfold;
use uuid::Uuid;

use crate::http::App;

/// How often an idle stream shows that it is alive.
const PING: Duration = Duration::from_secs(10);
/// The client shall come back, soon and to whoever answers then.
const RECONNECT: &str = "retry: 1000\n: reconnect\n\n";

pub(super) fn headers(stream: Uuid) -> HttpResponseBuilder {
    let mut response = HttpResponse::Ok();
    response
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "no-cache, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .insert_header(("X-Chat-Stream-Id", stream.to_string()));
    response
}

/// The events, pings between them, and at a shutdown the request to come back. The turn does not depend on it: the
/// body is only a reader.
pub(super) fn body(reader: Reader, app: &App) -> impl Stream<Item = Result<Bytes, ReaderError>> + use<> {
    let (clock, closing) = (app.clock().clone(), app.streams_closing().clone());
    unfold(Some(reader), move |reader| {
        let (clock, closing) = (clock.clone(), closing.clone());
        async move {
            let mut reader = reader?;
            let read = tokio::select! {
                biased;
                read = reader.next() => Some(read),
                () = closing.cancelled() => None,
                () = clock.sleep(PING) => {
                    return Some((Ok(Bytes::from_static(wire::sse::PING.as_bytes())), Some(reader)));
                }
            };
            match read {
                Some(Ok(Readout::Frames(frames))) => Some((Ok(frames), Some(reader))),
                Some(Ok(Readout::End)) => None,
                Some(Err(error)) => {
                    // The client resumes behind the last event it has seen.
                    tracing::warn!(%error, stream = %reader.stream(), "a stream was broken off");
                    Some((Err(error), None))
                }
                None => Some((Ok(Bytes::from_static(RECONNECT.as_bytes())), None)),
            }
        }
    })
}
