//! Streams a run's states as server-sent events. The run's other events are not exposed.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use actix_web::web::Bytes;
use actix_web::{HttpRequest, HttpResponse};
use actors::streams::{Reader, Readout};
use futures_util::Stream;
use futures_util::stream::unfold;
use parking_lot::Mutex;
use serde_json::json;
use store::StoredAppRun;
use uuid::Uuid;
use wire::ErrorCode;

use super::super::error::{AliasError, AliasResult};
use super::super::visitor::Visitor;
use super::releases::with_binding;
use super::{disclosure, read, segment};
use crate::http::ClientEnd;
use crate::http::error::ApiError;

/// The interval between keep-alive pings on an idle stream.
const PING: Duration = Duration::from_secs(10);
/// The poll interval for a state that is due soon.
const POLL: Duration = Duration::from_millis(100);
/// Tells the client to reconnect soon, to any available instance.
const RECONNECT: &str = "retry: 1000\n: reconnect\n\n";
/// Maximum concurrent streams on this instance, per anonymous client and per member.
const MOST_OF_CLIENT: usize = 4;
const MOST_OF_MEMBER: usize = 16;
/// Seconds after which a stream slot may be free.
const STREAM_WAIT: i64 = 5;
/// A position after every event, so that a reader receives only the end.
const AT_THE_END: u64 = u64::MAX - 1;

/// State numbers.
const QUEUED: u8 = 1;
const RUNNING: u8 = 2;
const ENDED: u8 = 3;

/// Open state streams, by app and reader.
#[derive(Default)]
pub(in crate::http) struct OpenStates(Arc<Mutex<HashMap<String, usize>>>);

/// The permit for one stream.
struct Permit {
    reader: String,
    open: Arc<Mutex<HashMap<String, usize>>>,
}

impl OpenStates {
    fn permit(&self, reader: String, most: usize) -> Option<Permit> {
        let mut open = self.0.lock();
        let count = open.entry(reader.clone()).or_default();
        if *count >= most {
            return None;
        }
        *count += 1;
        Some(Permit { reader, open: Arc::clone(&self.0) })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.reader) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                open.remove(&self.reader);
            }
        }
    }
}

/// A state stream: the last state sent, and the reader's position.
struct States {
    visitor: Visitor,
    handle: String,
    run: Uuid,
    /// The number of the last state that the client received.
    sent: u8,
    reader: Reader,
    /// Whether the reader reached the end of the run's stream.
    is_over: bool,
    client_end: ClientEnd,
    _permit: Permit,
}

/// The next item to send.
enum Next {
    State(u8, &'static str),
    Ping,
    Reconnect,
    End,
}

pub(super) async fn states(visitor: Visitor, request: HttpRequest) -> AliasResult<HttpResponse> {
    let handle = segment(&request, "handle")?.to_owned();
    let run = read::found(&visitor, &handle).await?;
    let sent = last_event(&request);
    let sent = match run.finished_at {
        Some(_) if sent == ENDED => return Ok(HttpResponse::NoContent().finish()),
        // The run has not ended, so no client can have received its end.
        None if sent == ENDED => 0,
        _ => sent,
    };
    let permit = permit(&visitor)?;
    let reader = reader(&visitor, &run);
    let client_end = ClientEnd::for_request(&request);
    let states =
        States { visitor, handle, run: run.run, sent, reader, is_over: false, client_end, _permit: permit };
    Ok(HttpResponse::Ok()
        .content_type("text/event-stream")
        .insert_header(("Cache-Control", "private, no-store, no-transform"))
        .insert_header(("X-Accel-Buffering", "no"))
        .streaming(body(states)))
}

/// The number of the last state that the client received; unknown values count as none.
fn last_event(request: &HttpRequest) -> u8 {
    let sent = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
    sent.and_then(|id| id.trim().parse().ok()).filter(|sent| (QUEUED..=ENDED).contains(sent)).unwrap_or(0)
}

fn permit(visitor: &Visitor) -> AliasResult<Permit> {
    let app = visitor.served.id;
    let (reader, most) = match &visitor.member {
        Some(member) => (format!("{app} member:{}", member.user), MOST_OF_MEMBER),
        None => (format!("{app} {}", visitor.network), MOST_OF_CLIENT),
    };
    let refused = || ApiError::new(ErrorCode::AppRateLimited).retry_after(STREAM_WAIT);
    Ok(visitor.open_states().permit(reader, most).ok_or_else(refused)?)
}

/// Reads the run's events until it executes, or only its end.
fn reader(visitor: &Visitor, run: &StoredAppRun) -> Reader {
    let waits = disclosure::state(run) == disclosure::QUEUED;
    visitor.app_runs().read(run.run, if waits { 0 } else { AT_THE_END })
}

fn body(states: States) -> impl Stream<Item = io::Result<Bytes>> {
    unfold(Some(states), |states| async move {
        let mut states = states?;
        Some(match states.next().await {
            Ok(Next::State(number, state)) => {
                states.sent = number;
                let data = json!({"state": state});
                let frame = Bytes::from(format!("id: {number}\ndata: {data}\n\n"));
                (Ok(frame), Some(states))
            }
            Ok(Next::Ping) => (Ok(Bytes::from_static(wire::sse::PING.as_bytes())), Some(states)),
            Ok(Next::Reconnect) => (Ok(Bytes::from_static(RECONNECT.as_bytes())), None),
            Ok(Next::End) => return None,
            // The client resumes after the last state it received.
            Err(error) => {
                tracing::warn!(%error, "run state stream interrupted");
                (Err(io::Error::other(error.to_string())), None)
            }
        })
    })
}

impl States {
    async fn next(&mut self) -> AliasResult<Next> {
        loop {
            let run = read::found(&self.visitor, &self.handle).await?;
            let (number, state) = self.now(&run).await?;
            if self.sent == ENDED {
                return Ok(Next::End);
            }
            if number > self.sent {
                if number == RUNNING {
                    self.reader = self.visitor.app_runs().read(self.run, AT_THE_END);
                }
                return Ok(Next::State(number, state));
            }
            if let Some(next) = self.wait().await? {
                return Ok(next);
            }
        }
    }

    async fn now(&self, run: &StoredAppRun) -> AliasResult<(u8, &'static str)> {
        let state =
            with_binding(&self.visitor, run, |binding| disclosure::shown(&self.handle, run, binding).state());
        Ok(match state.await? {
            disclosure::QUEUED => (QUEUED, disclosure::QUEUED),
            disclosure::RUNNING => (RUNNING, disclosure::RUNNING),
            ended => (ENDED, ended),
        })
    }

    /// Waits until the run's state may have changed. Returns an item to send meanwhile, if any.
    async fn wait(&mut self) -> AliasResult<Option<Next>> {
        let (clock, closing) = (self.visitor.clock().clone(), self.visitor.streams_closing().clone());
        if std::mem::take(&mut self.is_over) {
            // The stream has ended before the run's row is updated; the end is a moment away.
            clock.sleep(POLL).await;
            self.reader = self.visitor.app_runs().read(self.run, AT_THE_END);
        }
        tokio::select! {
            biased;
            read = self.reader.next() => {
                let read = read.map_err(|error| {
                    AliasError::from(ApiError::new(ErrorCode::AppUnavailable).with_cause(error))
                })?;
                // The row contains the outcome; the events before it are not exposed.
                self.is_over = read == Readout::End;
                Ok(None)
            }
            () = closing.cancelled() => Ok(Some(Next::Reconnect)),
            () = self.client_end.reached() => Ok(Some(Next::End)),
            () = clock.sleep(PING) => {
                Ok(Some(if self.may_read().await? { Next::Ping } else { Next::End }))
            }
        }
    }

    /// Whether a member who reads is still signed in.
    async fn may_read(&self) -> AliasResult<bool> {
        let Some(member) = &self.visitor.member else { return Ok(true) };
        let served = &self.visitor.served;
        // The cookie is not rotated here: the response has begun and cannot set a new one.
        Ok(self.visitor.store().app_session_lives(served.id, served.workspace, member.session).await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_streams_of_a_reader_are_limited() {
        let open = OpenStates::default();
        let first = open.permit("a".into(), 2);
        let second = open.permit("a".into(), 2);
        assert!(first.is_some() && second.is_some() && open.permit("a".into(), 2).is_none());
        assert!(open.permit("b".into(), 2).is_some());
        drop(first);
        assert!(open.permit("a".into(), 2).is_some());
        drop(second);
        assert!(open.0.lock().is_empty());
    }
}
