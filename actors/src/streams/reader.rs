//! Reading a stream: first what is stored, then what is published, and whenever that is not kept any more, what is stored again.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kernel::Clock;
use store::{Store, StoreError};
use uuid::Uuid;
use wire::sse::split_after;

use super::recent::Behind;
use super::topic::{Topic, Topics};

/// Stored commits that one look at the database reads.
const ROWS: i64 = 64;
/// How often a reader of a foreign stream polls the database itself. [`super::foreign`] wakes it much earlier, unless the
/// stream has been deleted. Thousands may wait for parked runs: shorter, that costs more than their pings.
const POLL: Duration = Duration::from_secs(60);

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
    /// What was stored before has been read; what follows happens now. Only if it was asked for, and once.
    Live,
    /// Nothing follows.
    End,
}

/// Reads one stream, in order, each event once, from any place on.
pub struct Reader {
    stream: Uuid,
    /// The last event that was read.
    seen: u64,
    topic: Arc<Topic>,
    topics: Topics,
    store: Store,
    clock: Arc<dyn Clock>,
    /// Read from the database, not handed out yet.
    stored: VecDeque<Bytes>,
    catch_up: bool,
    ended: bool,
    /// Whether [`Readout::Live`] is still to come.
    marks_live: bool,
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
        let topic = topics.subscribe(stream);
        Self {
            stream,
            seen: after,
            topic,
            topics: topics.clone(),
            store,
            clock,
            stored: VecDeque::new(),
            catch_up: !fresh,
            ended: false,
            marks_live: false,
        }
    }

    /// Marks where live events begin, unless the stream has ended by then.
    #[must_use]
    pub fn marking_live(mut self) -> Self {
        self.marks_live = true;
        self
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
            {
                // Before the look: nothing that is published meanwhile is slept through.
                let news = self.topic.news();
                match self.topic.behind(self.seen) {
                    Behind::Frames(..) | Behind::UpToDate if self.marks_live && !self.catch_up => {
                        self.marks_live = false;
                        return Ok(Readout::Live);
                    }
                    Behind::Frames(frames, last_seq) => {
                        (self.seen, self.catch_up) = (last_seq, false);
                        return Ok(Readout::Frames(frames));
                    }
                    // Too slow, or another process wrote it: it is in the database, whole and in order.
                    Behind::Gone => self.catch_up = true,
                    Behind::UpToDate | Behind::End if self.catch_up => {}
                    Behind::End => self.ended = true,
                    Behind::UpToDate => tokio::select! {
                        () = news => {}
                        // A writer on another instance sends no notification here.
                        () = self.clock.sleep(POLL), if !self.topic.is_produced_here() => self.catch_up = true,
                    },
                }
            }
            if self.catch_up {
                self.read_stored().await?;
            }
        }
    }

    async fn read_stored(&mut self) -> Result<(), ReaderError> {
        let topics = self.topics.clone();
        let _turn = topics.turn_to_catch_up().await;
        // What was published before is stored by now.
        let published = self.topic.last_seq();
        // The state before the rows: a stream that had ended has all its rows by then.
        let state = self.store.stream(self.stream).await?;
        let rows = self.store.frames_after(self.stream, self.seen, ROWS).await?;
        let full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS;
        // Not the reader's own place, which is only a claim of its client.
        let last_stored = rows.last().map(|row| row.last_seq);
        for row in rows {
            let rest = split_after(&row.frames, row.first_seq, self.seen);
            self.stored.push_back(Bytes::copy_from_slice(rest.as_bytes()));
            self.seen = row.last_seq;
        }
        if !full {
            // Whatever of it is not there is not there any more.
            self.seen = self.seen.max(published);
        }
        match last_stored {
            Some(last_stored) => self.topic.has_read(last_stored),
            // Nothing follows this reader's place. Without what the database has, every event would be polled once more.
            None if !self.topic.is_produced_here() && self.topic.last_seq() == 0 => {
                self.topic.has_read(self.store.last_seq(self.stream).await?);
            }
            None => {}
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
