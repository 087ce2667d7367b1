//! Reads a stream: first stored events, then published ones, and stored events again whenever published ones were
//! evicted.

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

/// Maximum stored commits per query.
const ROWS: i64 = 64;
/// Interval at which a foreign stream's reader polls the database itself. [`super::foreign`] wakes it much earlier,
/// unless the stream has been deleted. Thousands may wait for parked runs: shorter polls would cost more than their
/// pings.
const POLL: Duration = Duration::from_secs(60);

/// Reading a stream has failed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ReaderError(#[from] StoreError);

impl From<ReaderError> for StoreError {
    fn from(error: ReaderError) -> Self {
        error.0
    }
}

/// The next part of a stream for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Readout {
    /// More events.
    Frames(Bytes),
    /// The stored events have been read; live events follow. Only on request, and once.
    Live,
    /// The stream has ended.
    End,
}

/// Reads one stream in order, each event once, from any position.
pub struct Reader {
    stream: Uuid,
    /// The last event read.
    seen: u64,
    topic: Arc<Topic>,
    topics: Topics,
    store: Store,
    clock: Arc<dyn Clock>,
    /// Read from the database, not returned yet.
    stored: VecDeque<Bytes>,
    catch_up: bool,
    ended: bool,
    /// Whether [`Readout::Live`] is pending.
    marks_live: bool,
}

impl Reader {
    /// Reads after event `after`. `fresh`: the stream is new, with nothing stored yet.
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

    /// Marks the start of live events, unless the stream has ended before.
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

    /// Returns the next part. Cancel-safe.
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
                // Created before the check, so events published meanwhile are not missed.
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
                    // The reader was too slow, or another process wrote it: the database has it, whole and in order.
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
        // Events published before are stored by now.
        let published = self.topic.last_seq();
        // State before rows: if the stream has ended, all its rows are stored by then.
        let state = self.store.stream(self.stream).await?;
        let rows = self.store.frames_after(self.stream, self.seen, ROWS).await?;
        let full = i64::try_from(rows.len()).unwrap_or(i64::MAX) >= ROWS;
        // Not the reader's position, which is only a claim by its client.
        let last_stored = rows.last().map(|row| row.last_seq);
        for row in rows {
            let rest = split_after(&row.frames, row.first_seq, self.seen);
            self.stored.push_back(Bytes::copy_from_slice(rest.as_bytes()));
            self.seen = row.last_seq;
        }
        if !full {
            // Events that are missing now have been deleted.
            self.seen = self.seen.max(published);
        }
        match last_stored {
            Some(last_stored) => self.topic.has_read(last_stored),
            // Nothing follows the reader's position. Without the database's last number, every event would be polled
            // once more.
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
