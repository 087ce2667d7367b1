//! A test stream that shows whether proxies between client and service pass streams through.
//!
//! It accesses no data, so anyone may read it. Its length, rate and concurrency are limited.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Bytes, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use futures_util::Stream;
use futures_util::stream::unfold;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wire::ErrorCode;
use wire::operations::health as operations;

use super::error::{ApiError, ApiResult};
use super::guard::Anyone;
use super::query::Params;
use super::routes::Routes;
use super::{App, events};

/// The pause between two events.
const PAUSE: Duration = Duration::from_millis(500);
const EVENTS: i64 = 5;
const MOST_EVENTS: i64 = 20;
/// Maximum open streams for all callers together.
const MOST_STREAMS: usize = 16;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default().on(&operations::STREAM, stream).register(config);
}

/// The permits for open streams.
pub(super) fn places() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(MOST_STREAMS))
}

async fn stream(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let mut query = Params::from_request(&request);
    let of = query.whole("events", 1..=MOST_EVENTS).unwrap_or(EVENTS);
    ApiError::refuse(query.finish())?;
    let place = Arc::clone(app.diagnosis_places()).try_acquire_owned();
    let place = place.map_err(|_| ApiError::new(ErrorCode::Overloaded).with_cause("diagnosis streams"))?;
    Ok(events::headers().streaming(body(&app, of, place)))
}

/// Numbered events, half a second apart; the first is sent at once.
fn body(
    app: &App,
    of: i64,
    place: OwnedSemaphorePermit,
) -> impl Stream<Item = Result<Bytes, std::convert::Infallible>> + use<> {
    let (clock, closing) = (app.clock().clone(), app.streams_closing().clone());
    unfold((1, place), move |(event, place)| {
        let (clock, closing) = (clock.clone(), closing.clone());
        async move {
            if event > of {
                return None;
            }
            if event > 1 {
                tokio::select! {
                    () = clock.sleep(PAUSE) => {}
                    () = closing.cancelled() => return None,
                }
            }
            let frame = format!("data: {}\n\n", json!({"event": event, "of": of}));
            Some((Ok(Bytes::from(frame)), (event + 1, place)))
        }
    })
}
