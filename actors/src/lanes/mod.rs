//! The database actor: lanes that commit the buffers of many streams together, and publish the committed events.
//!
//! A *key* is an ordered writer, usually a run. Its writes are buffered by key; a lane takes whole buffers, so writes
//! that arrive during a commit merge into the next one. A key is in at most one batch at a time, which keeps its writes
//! in order. The lanes are tasks on the database thread, watched like every actor. Workspaces share the commits: see
//! `waiting`.

mod buffer;
mod lane;
mod queue;
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use store::batch::Batch;
use store::{Lease, Store};
use tokio::sync::oneshot;
use uuid::Uuid;

pub use buffer::{EventFrames, Then};
use lane::LaneState;
use queue::Queue;

use crate::runtime::Health;
use crate::streams::Topics;

/// An ordered writer, usually a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriterKey {
    /// Its id.
    pub id: Uuid,
    /// The workspace whose share of the commits its writes use.
    pub workspace: Uuid,
}

/// A write was not committed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// The rows cannot be written; further writes under this key are refused until it is forgiven.
    #[error("the rows cannot be written: {0}")]
    Poisoned(String),
    /// Another owner has this instance's lease.
    #[error("another instance has taken over the lease")]
    Fenced,
    /// The lanes have stopped.
    #[error("the service is shutting down")]
    Closed,
    /// Too many writes are pending.
    #[error("the write queue is full")]
    Full,
}

/// Hands rows and events to the lanes. Cheap to clone.
#[derive(Clone)]
pub struct Database {
    queue: Arc<Queue>,
    states: Arc<[LaneState]>,
    clock: Arc<dyn Clock>,
}

impl Database {
    /// Starts `writers` lanes.
    #[must_use]
    pub fn start(
        store: &Store,
        lease: Lease,
        writers: usize,
        topics: &Topics,
        clock: &Arc<dyn Clock>,
        health: &Health,
    ) -> Self {
        let writers = u32::try_from(writers).unwrap_or(u32::MAX).max(1);
        let queue = Arc::new(Queue::new(writers));
        let states: Vec<LaneState> = (0..writers).map(|_| LaneState::default()).collect();
        for (number, state) in (0..writers).zip(&states) {
            let lane = lane::Lane {
                number,
                queue: Arc::clone(&queue),
                store: store.clone(),
                lease,
                topics: topics.clone(),
                clock: Arc::clone(clock),
                health: health.clone(),
                state: state.clone(),
            };
            store.runtime().spawn(lane::watch(lane));
        }
        Self { queue, states: states.into(), clock: Arc::clone(clock) }
    }

    /// Duration of the longest current commit failure of a lane; `None` if all lanes commit.
    #[must_use]
    pub fn failing_for(&self) -> Option<Duration> {
        let since = self.states.iter().filter_map(LaneState::since).min()?;
        Some(self.clock.monotonic().saturating_sub(since))
    }

    /// Hands rows over without waiting.
    ///
    /// # Errors
    /// [`WriteError`] when the key accepts no more writes.
    pub fn submit(
        &self,
        key: WriterKey,
        batch: Batch,
        events: Option<EventFrames>,
    ) -> Result<(), WriteError> {
        self.queue.push(key, batch, events, None, false)
    }

    /// Hands rows over; `then` is called on the database thread once they are committed or refused.
    ///
    /// # Errors
    /// [`WriteError`] when the key accepts no more writes; `then` is dropped.
    pub fn submit_then(
        &self,
        key: WriterKey,
        batch: Batch,
        events: Option<EventFrames>,
        then: Then,
    ) -> Result<(), WriteError> {
        self.queue.push(key, batch, events, Some(then), false)
    }

    /// The same for valid rows of a poisoned key; the key stays poisoned.
    pub(crate) fn submit_despite_poison(
        &self,
        key: WriterKey,
        batch: Batch,
        events: Option<EventFrames>,
        then: Then,
    ) -> Result<(), WriteError> {
        self.queue.push(key, batch, events, Some(then), true)
    }

    /// Hands rows over and waits for their commit. Dropping the future does not withdraw them.
    ///
    /// # Errors
    /// [`WriteError`] with the reason why they were not committed.
    pub async fn commit(
        &self,
        key: WriterKey,
        batch: Batch,
        events: Option<EventFrames>,
    ) -> Result<(), WriteError> {
        let (done, committed) = oneshot::channel();
        let then: Then = Box::new(move |outcome| {
            let _ = done.send(outcome);
        });
        self.submit_then(key, batch, events, then)?;
        committed.await.unwrap_or(Err(WriteError::Closed))
    }

    /// Waits until everything handed over under this key is committed.
    ///
    /// # Errors
    /// [`WriteError`] when some of it will never be committed.
    pub async fn flush(&self, key: Uuid) -> Result<(), WriteError> {
        // Pending writes under the key already have their workspace.
        self.commit(WriterKey { id: key, workspace: Uuid::nil() }, Batch::default(), None).await
    }

    /// Accepts writes of a poisoned key again.
    pub fn forgive(&self, key: Uuid) {
        self.queue.forgive(key);
    }

    /// Waits while the pending writes of the key, its workspace or all keys exceed the limit.
    pub async fn room(&self, key: WriterKey) {
        self.queue.room(key).await;
    }

    /// Whether [`Self::room`] would not wait.
    #[must_use]
    pub fn has_room(&self, key: WriterKey) -> bool {
        self.queue.has_room(key)
    }

    /// Whether new work may start.
    #[must_use]
    pub fn takes_new_work(&self) -> bool {
        self.queue.takes_new_work()
    }

    /// Waits until everything is committed and published to readers; callers that wait for a commit are notified
    /// before.
    pub async fn idle(&self) {
        self.queue.idle().await;
    }

    /// Accepts no more writes and waits until everything is committed.
    pub async fn close(&self) {
        self.queue.close().await;
    }
}
