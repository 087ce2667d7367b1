//! Reading a stream: first what is stored, then what is published, then, after a cut, what is stored again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kernel::Clock;
use store::{Store, StoreError};
use tokio::sync::broadcast::{self, error::RecvError};
use uuid::Uuid;
use wire::sse::split_after;

use super::topic::{Published, Topic, Topics};

/// Stored commits that one look at the database reads.
const ROWS: i64 = 64;
/// How often a stream that is written elsewhere is looked for in the database.
const POLL: Duration = Duration::from_secs(1);

/// A stream could not be read on.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReaderError(#[from] StoreError);

impl From<ReaderError> for StoreError {
    fn from(error: ReaderError) -> Self {
        error.0
    }
}

/// What a reader has for its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readout {
    /// More of the stream.
    Frames(Bytes),
    /// Nothing follows.
    End,
}

/// Reads one stream, in order, each event once, from any place on.
pub struct Reader {
    stream: Uuid,
    seen: u64,
    topic: Arc<Topic>,
    topics: Topics,
    events: broadcast::Receiver<Published>,
    store: Store,
    clock: Arc<dyn Clock>,
    /// Read from the database, not handed out yet.
    stored: VecDeque<Bytes>,
    catch_up: bool,
    ended: bool,
}

impl Reader {
    /// Reads behind event `after`. A new stream has nothing stored yet, which `fresh` says.
    #[must_use]
    pub fn open(
        topics: &Topics,
        store: Store,
        clock: Arc<dyn Clock>,
        stream: Uuid,
        after: u64,
        fresh: bool,
    ) -> Self {
        let topic = topics.get(stream);
        let events = topic.subscribe();
        Self {
            stream,
            seen: after,
            topic,
            topics: topics.clone(),
            events,
            store,
            clock,
            stored: VecDeque::new(),
            catch_up: !fresh,
            ended: false,
        }
    }

    /// The stream.
    #[must_use]
    pub fn stream(&self) -> Uuid {
        self.stream
    }

    /// What comes next. May be dropped while it waits.
    ///
    /// # Errors
    /// [`ReaderError`] when the database does not answer; the client can resume later.
    pub async fn next(&mut self) -> Result<Readout, ReaderError> {
        loop {
            if let Some(frames) = self.stored.pop_front() {
                return Ok(Readout::Frames(frames));
            }
            if self.ended {
                return Ok(Readout::End);
            }
            if self.catch_up {
                self.read_stored().await?;
                continue;
            }
            let published = tokio::select! {
                published = self.events.recv() => published,
                // Whoever writes elsewhere is not heard here.
                () = self.clock.sleep(POLL), if !self.topic.is_produced_here() => {
                    self.catch_up = true;
                    continue;
                }
            };
            match published {
                Ok(published) => {
                    if let Some(frames) = self.take(published) {
                        return Ok(Readout::Frames(frames));
                    }
                }
                // Too slow: what was missed is in the database, whole and in order.
                Err(RecvError::Lagged(_)) => self.catch_up = true,
                Err(RecvError::Closed) => self.ended = true,
            }
        }
    }

    fn take(&mut self, published: Published) -> Option<Bytes> {
        let Published { first_seq, last_seq, frames, end } = published;
        // A client may claim to have seen anything.
        let next = self.seen.saturating_add(1);
        if first_seq > next {
            // A gap can only be events of another process; they are stored.
            self.catch_up = true;
            return None;
        }
        self.ended |= end;
        if last_seq <= self.seen {
            return None;
        }
        let seen = std::mem::replace(&mut self.seen, last_seq);
        if first_seq == next {
            return Some(frames);
        }
        let text = std::str::from_utf8(&frames).ok()?;
        let rest = split_after(text, first_seq, seen);
        Some(frames.slice_ref(rest.as_bytes()))
    }

    async fn read_stored(&mut self) -> Result<(), ReaderError> {
        let topics = self.topics.clone();
        let _turn = topics.turn_to_catch_up().await;
        // The state before the rows: a stream that had ended has all its rows by then.
        let state = self.store.stream(self.stream).await?;
        let rows = self.store.frames_after(self.stream, self.seen, ROWS).await?;
        let full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS;
        for row in rows {
            let rest = split_after(&row.frames, row.first_seq, self.seen);
            self.stored.push_back(Bytes::copy_from_slice(rest.as_bytes()));
            self.seen = row.last_seq;
        }
        self.catch_up = full;
        self.ended = !full && state.is_none_or(|state| state.ended);
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.topic.unsubscribe();
        self.topics.forget_unused(self.stream);
    }
}
