//! Reads one event stream, event by event.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use serde::de::DeserializeOwned;
use wire::chat::ChatEvent;
use wire::{RunFrame, TrainingFrame};

use crate::sse::{Body, Frame, Frames};
use crate::turn::{Collector, Turn};
use crate::{ClientError, TransportFault};

/// An event with its position in the stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamEvent<E = ChatEvent> {
    /// The sequence number; increases within a stream.
    pub seq: u64,
    /// `<stream>.<seq>`, for `Last-Event-ID`.
    pub id: String,
    /// The event.
    pub event: E,
}

/// One chat response, read as it arrives.
///
/// When [`EventStream::next`] fails with [`ClientError::Transport`], [`crate::Client::resume`] resumes after the last
/// event; [`crate::ResumingChat`] does so by itself.
pub type ChatStream = EventStream<ChatEvent>;

/// A run's events, read as they arrive.
///
/// When [`EventStream::next`] fails with [`ClientError::Transport`], [`crate::Client::run_events`] resumes after the
/// last event; [`crate::ResumingRun`] does so by itself.
pub type RunStream = EventStream<RunFrame>;

/// Training or evaluation events, read as they arrive.
///
/// When [`EventStream::next`] fails with [`ClientError::Transport`], [`crate::Client::training_events`] resumes after the
/// last event; [`crate::ResumingTraining`] does so by itself.
pub type TrainingStream = EventStream<TrainingFrame>;

/// A stream of events of one kind, read as they arrive.
pub struct EventStream<E> {
    stream_id: String,
    frames: Frames,
    last_event_id: Option<String>,
    skipped: u64,
    state: StreamState,
    event: PhantomData<fn() -> E>,
}

#[derive(Clone, Copy)]
enum StreamState {
    Open,
    Ended,
    Broken,
}

impl<E: DeserializeOwned> EventStream<E> {
    pub(crate) fn new(stream_id: String, body: Body, clock: Arc<dyn Clock>, idle_limit: Duration) -> Self {
        let frames = Frames::new(body, clock, idle_limit);
        Self {
            stream_id,
            frames,
            last_event_id: None,
            skipped: 0,
            state: StreamState::Open,
            event: PhantomData,
        }
    }

    /// The stream's id: for chat, from the header `X-Chat-Stream-Id`; otherwise the id of the run, training or
    /// evaluation.
    #[must_use]
    pub fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// The last received event's id, known or not.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// Number of events skipped because this client does not know them.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    /// The next event that this client knows; `None` at the end of the stream.
    ///
    /// # Errors
    /// [`ClientError::Transport`] if the connection broke or the service asked to reconnect; [`ClientError::Protocol`]
    /// for an event that does not belong to this stream.
    pub async fn next(&mut self) -> Result<Option<StreamEvent<E>>, ClientError> {
        match self.state {
            StreamState::Open => {}
            StreamState::Ended => return Ok(None),
            StreamState::Broken => return Err(ClientError::fault(TransportFault::Cut)),
        }
        let outcome = self.read().await;
        match &outcome {
            Ok(Some(_)) => {}
            Ok(None) => self.state = StreamState::Ended,
            Err(_) => self.state = StreamState::Broken,
        }
        outcome
    }

    async fn read(&mut self) -> Result<Option<StreamEvent<E>>, ClientError> {
        while let Some(frame) = self.frames.next().await? {
            let (id, data) = match frame {
                Frame::Comment(text) if text.trim() == "reconnect" => {
                    return Err(ClientError::fault(TransportFault::Reconnect));
                }
                Frame::Comment(_) => continue,
                Frame::Event { id, data } => (id.unwrap_or_default(), data),
            };
            // The marker for live events has no position in the stream.
            if id.is_empty() && data == wire::sse::LIVE_DATA {
                continue;
            }
            let seq = wire::sse::parse_event_id(&id, &self.stream_id).ok_or_else(|| {
                ClientError::protocol(format!(
                    "the event id `{id}` does not belong to stream {}",
                    self.stream_id
                ))
            })?;
            self.last_event_id = Some(id.clone());
            match serde_json::from_str(&data) {
                Ok(event) => return Ok(Some(StreamEvent { seq, id, event })),
                Err(_) => self.skipped = self.skipped.saturating_add(1),
            }
        }
        Ok(None)
    }
}

impl ChatStream {
    /// Reads to the end of the turn, without resuming.
    ///
    /// # Errors
    /// As [`ChatStream::next`].
    pub async fn collect(mut self) -> Result<Turn, ClientError> {
        let mut collector = Collector::new(self.stream_id.clone());
        while let Some(event) = self.next().await? {
            collector.take(event);
        }
        Ok(collector.finish(0, self.skipped))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use futures_util::{StreamExt as _, stream};
    use kernel::SystemClock;

    use super::*;
    use crate::error::Cause;

    fn open(pieces: Vec<Result<&'static str, Cause>>) -> ChatStream {
        let body = stream::iter(pieces).map(|piece| piece.map(|text| Bytes::from_static(text.as_bytes())));
        ChatStream::new("s".into(), body.boxed(), Arc::new(SystemClock::new()), Duration::from_secs(5))
    }

    const NOTICE: &str = "id: s.1\ndata: {\"type\":\"notice\",\"level\":\"info\",\"message\":\"m\"}\n\n";

    #[tokio::test]
    async fn unknown_events_are_skipped_but_counted_and_remembered() {
        let odd = "id: s.2\ndata: {\"type\":\"thread.exploded\"}\n\nid: s.3\ndata: not json\n\n";
        let mut stream = open(vec![Ok(": ping\n\n"), Ok(NOTICE), Ok(odd)]);
        let event = stream.next().await.unwrap().unwrap();
        assert_eq!((event.seq, event.id.as_str()), (1, "s.1"));
        assert_eq!(stream.next().await.unwrap(), None);
        assert_eq!(stream.next().await.unwrap(), None);
        assert_eq!((stream.skipped(), stream.last_event_id()), (2, Some("s.3")));
    }

    #[tokio::test]
    async fn a_broken_connection_stays_an_error() {
        let mut stream = open(vec![Ok(NOTICE), Err("reset".into())]);
        assert!(stream.next().await.unwrap().is_some());
        for _ in 0..2 {
            let error = stream.next().await.unwrap_err();
            assert!(matches!(error, ClientError::Transport { fault: TransportFault::Cut, .. }), "{error}");
        }
        assert_eq!(stream.last_event_id(), Some("s.1"));
    }

    #[tokio::test]
    async fn an_end_inside_an_event_is_a_broken_connection() {
        let error = open(vec![Ok("id: s.1\ndata: {")]).next().await.unwrap_err();
        assert!(matches!(error, ClientError::Transport { fault: TransportFault::Cut, .. }), "{error}");
    }

    #[tokio::test]
    async fn the_service_can_request_a_reconnect() {
        let mut stream = open(vec![Ok(NOTICE), Ok(": reconnect\n\n")]);
        assert!(stream.next().await.unwrap().is_some());
        let error = stream.next().await.unwrap_err();
        assert!(matches!(error, ClientError::Transport { fault: TransportFault::Reconnect, .. }), "{error}");
    }

    #[tokio::test]
    async fn an_event_of_another_stream_or_without_an_id_is_refused() {
        for text in ["id: t.1\ndata: {}\n\n", "data: {}\n\n"] {
            let error = open(vec![Ok(text)]).next().await.unwrap_err();
            assert!(matches!(error, ClientError::Protocol { .. }), "{error}");
        }
    }

    #[tokio::test]
    async fn silence_is_a_timeout() {
        let body = stream::pending::<Result<Bytes, Cause>>().boxed();
        let clock = Arc::new(SystemClock::new());
        let mut stream = ChatStream::new("s".into(), body, clock, Duration::from_millis(5));
        let error = stream.next().await.unwrap_err();
        assert!(matches!(error, ClientError::Transport { fault: TransportFault::Timeout, .. }), "{error}");
    }
}
