//! Follows a turn or a run to its end over broken connections.

use std::time::Duration;

use kernel::backoff;
use serde::de::DeserializeOwned;
use serde_json::Value;
use wire::chat::ChatEvent;
use wire::operation::Operation;
use wire::operations::chat;
use wire::{RunFrame, TrainingFrame};

use crate::client::Bearer;
use crate::turn::{Collector, Turn};
use crate::{ChatOptions, ChatStream, Client, ClientError, EventStream, StreamEvent};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
/// The maximum pause; also the minimum time that a connection must hold to count as a success.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// A turn's events, resumed after each broken connection until the stream ends.
///
/// It gives up after `resume_limit` without a success. [`Resuming::next`] is cancel-safe.
pub type ResumingChat = Resuming<ChatEvent>;

/// A run's events, resumed like [`ResumingChat`].
pub type ResumingRun = Resuming<RunFrame>;

/// Training or evaluation events, resumed like [`ResumingChat`].
pub type ResumingTraining = Resuming<TrainingFrame>;

/// A stream's path, and the token to read it with.
pub(crate) struct StreamSource {
    pub(crate) path: Vec<String>,
    pub(crate) bearer: Bearer,
}

impl StreamSource {
    pub(crate) fn new(operation: &Operation, values: &[&str], bearer: Bearer) -> Self {
        Self { path: operation.segments(values).into_iter().map(str::to_owned).collect(), bearer }
    }
}

/// An event stream that is read to its end, over as many connections as necessary.
pub struct Resuming<E> {
    client: Client,
    source: StreamSource,
    stream_id: String,
    link: Link<E>,
    last_event_id: Option<String>,
    last_seq: Option<u64>,
    outage: Option<Outage>,
    /// The pause before the next attempt.
    wait: Duration,
    resumes: u32,
    repeated: u64,
    skipped: u64,
}

enum Link<E> {
    Up { stream: Box<EventStream<E>>, since: Duration },
    Down,
    Over,
}

/// A period without success.
#[derive(Debug, Clone, Copy)]
struct Outage {
    since: Duration,
    failures: u32,
}

impl Outage {
    fn new(now: Duration) -> Self {
        Self { since: now, failures: 0 }
    }

    /// The pause before the next attempt; `None` when it is time to give up.
    fn next_pause(&mut self, now: Duration, limit: Duration, asked: Option<Duration>) -> Option<Duration> {
        self.failures = self.failures.saturating_add(1);
        let pause = backoff(FIRST_PAUSE, self.failures, LONGEST_PAUSE).max(asked.unwrap_or_default());
        (now.saturating_add(pause) <= self.since.saturating_add(limit)).then_some(pause)
    }
}

impl ResumingChat {
    pub(crate) async fn begin(
        client: &Client,
        body: &Value,
        options: &ChatOptions,
    ) -> Result<Self, ClientError> {
        let parts = client.parts();
        let mut outage = Outage::new(parts.clock.monotonic());
        loop {
            let error = match client.chat_raw(body, options).await {
                Ok(stream) => return Ok(Self::over(client, stream)),
                Err(error) => error,
            };
            // Without a key, a second attempt could send the message twice.
            let lost = matches!(error, ClientError::Transport { .. }) && options.idempotency_key.is_some();
            let now = parts.clock.monotonic();
            match outage.next_pause(now, parts.resume_limit, None) {
                Some(pause) if lost => parts.clock.sleep(pause).await,
                _ => return Err(error),
            }
        }
    }

    fn over(client: &Client, stream: ChatStream) -> Self {
        let mut chat = Self::rejoin(client, chat_source(stream.stream_id()), stream.stream_id(), None);
        chat.link = Link::Up { stream: Box::new(stream), since: chat.now() };
        chat
    }
}

/// A chat stream's source.
pub(crate) fn chat_source(stream_id: &str) -> StreamSource {
    StreamSource::new(&chat::RESUME, &[stream_id], Bearer::Session)
}

impl<E: DeserializeOwned> Resuming<E> {
    pub(crate) fn rejoin(
        client: &Client,
        source: StreamSource,
        stream_id: &str,
        last_event_id: Option<&str>,
    ) -> Self {
        Self {
            client: client.clone(),
            source,
            stream_id: stream_id.to_owned(),
            link: Link::Down,
            last_event_id: last_event_id.map(ToOwned::to_owned),
            last_seq: last_event_id.and_then(|id| wire::sse::parse_event_id(id, stream_id)),
            outage: None,
            wait: Duration::ZERO,
            resumes: 0,
            repeated: 0,
            skipped: 0,
        }
    }

    /// The stream's id.
    #[must_use]
    pub fn stream_id(&self) -> &str {
        &self.stream_id
    }

    /// The last received event's id.
    #[must_use]
    pub fn last_event_id(&self) -> Option<&str> {
        match &self.link {
            Link::Up { stream, .. } => stream.last_event_id().or(self.last_event_id.as_deref()),
            Link::Down | Link::Over => self.last_event_id.as_deref(),
        }
    }

    /// Number of times that the stream was resumed.
    #[must_use]
    pub fn resumes(&self) -> u32 {
        self.resumes
    }

    /// Number of repeated events that were dropped. A correct service sends none.
    #[must_use]
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Number of events skipped because this client does not know them.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        match &self.link {
            Link::Up { stream, .. } => self.skipped.saturating_add(stream.skipped()),
            Link::Down | Link::Over => self.skipped,
        }
    }

    /// The next event; `None` at the end of the stream.
    ///
    /// # Errors
    /// The last failure when resuming did not succeed in time; a permanent failure at once.
    pub async fn next(&mut self) -> Result<Option<StreamEvent<E>>, ClientError> {
        loop {
            let outcome = match &mut self.link {
                Link::Over => return Ok(None),
                Link::Down => {
                    self.reconnect().await?;
                    continue;
                }
                Link::Up { stream, .. } => stream.next().await,
            };
            match outcome {
                Ok(Some(event)) => {
                    self.outage = None;
                    if self.last_seq.is_some_and(|last| event.seq <= last) {
                        self.repeated = self.repeated.saturating_add(1);
                        continue;
                    }
                    self.last_seq = Some(event.seq);
                    return Ok(Some(event));
                }
                Ok(None) => self.leave(Link::Over),
                Err(error) => {
                    self.leave(Link::Down);
                    self.back_off(error)?;
                }
            }
        }
    }

    /// Saves the progress of a connection before dropping it.
    fn leave(&mut self, to: Link<E>) {
        let now = self.now();
        if let Link::Up { stream, since } = std::mem::replace(&mut self.link, to) {
            if let Some(last) = stream.last_event_id() {
                self.last_event_id = Some(last.to_owned());
            }
            self.skipped = self.skipped.saturating_add(stream.skipped());
            // A turn may think for long: a connection that held was a success even without an event.
            if now.saturating_sub(since) >= LONGEST_PAUSE {
                self.outage = None;
            }
        }
    }

    async fn reconnect(&mut self) -> Result<(), ClientError> {
        loop {
            let wait = std::mem::take(&mut self.wait);
            if !wait.is_zero() {
                self.client.parts().clock.sleep(wait).await;
            }
            let last = self.last_event_id.as_deref();
            let error = match self.client.read_stream(&self.source, &self.stream_id, last).await {
                Ok(Some(stream)) => {
                    self.resumes = self.resumes.saturating_add(1);
                    self.link = Link::Up { stream: Box::new(stream), since: self.now() };
                    return Ok(());
                }
                Ok(None) => {
                    self.link = Link::Over;
                    return Ok(());
                }
                Err(error) => error,
            };
            self.back_off(error)?;
        }
    }

    /// Sets the wait before the next attempt, or returns the error.
    fn back_off(&mut self, error: ClientError) -> Result<(), ClientError> {
        let now = self.now();
        let limit = self.client.parts().resume_limit;
        let outage = self.outage.get_or_insert_with(|| Outage::new(now));
        match outage.next_pause(now, limit, error.retry_after()) {
            Some(pause) if error.is_passing() => {
                self.wait = pause;
                Ok(())
            }
            _ => Err(error),
        }
    }

    fn now(&self) -> Duration {
        self.client.parts().clock.monotonic()
    }
}

impl ResumingChat {
    /// Reads to the end of the turn.
    ///
    /// # Errors
    /// As [`Resuming::next`].
    pub async fn collect(self) -> Result<Turn, ClientError> {
        self.collect_with(|_| {}).await
    }

    /// Reads to the end of the turn and passes each event to `show`.
    ///
    /// # Errors
    /// As [`Resuming::next`].
    pub async fn collect_with(mut self, mut show: impl FnMut(&StreamEvent)) -> Result<Turn, ClientError> {
        let mut collector = Collector::new(self.stream_id.clone());
        while let Some(event) = self.next().await? {
            show(&event);
            collector.take(event);
        }
        Ok(collector.finish(self.resumes, self.skipped()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_bound_and_end_with_the_limit() {
        let mut outage = Outage::new(Duration::ZERO);
        let mut now = Duration::ZERO;
        let mut pauses = Vec::new();
        while let Some(pause) = outage.next_pause(now, Duration::from_secs(10), None) {
            now += pause;
            pauses.push(pause.as_millis());
        }
        assert_eq!(pauses, [50, 100, 200, 400, 800, 1600, 2000, 2000, 2000]);
    }

    #[test]
    fn a_requested_retry_delay_is_kept_unless_it_exceeds_the_limit() {
        let limit = Duration::from_secs(10);
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let mut outage = Outage::new(Duration::ZERO);
        assert_eq!(outage.next_pause(Duration::ZERO, limit, seconds(7)), seconds(7));
        assert_eq!(outage.next_pause(Duration::from_secs(7), limit, seconds(7)), None);
    }
}
