//! A lane: takes buffers, commits them, and publishes their events.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use kernel::{Clock, backoff};
use parking_lot::Mutex;
use store::batch::Batch;
use store::{LaneConnection, LaneError, Lease, Store};
use uuid::Uuid;

use super::WriteError;
use super::buffer::Buffer;
use super::queue::Queue;
use crate::runtime::Health;
use crate::streams::Topics;

/// First pause after the database did not accept a batch; doubles up to [`PAUSE_MAX`].
const PAUSE: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Maximum age of a connection, because it keeps a prepared statement for each commit shape and each day.
const CONNECTION_LIFE: Duration = Duration::from_secs(6 * 3_600);

pub(super) struct Lane {
    pub(super) number: u32,
    pub(super) queue: Arc<Queue>,
    pub(super) store: Store,
    pub(super) lease: Lease,
    pub(super) topics: Topics,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) health: Health,
    pub(super) state: LaneState,
}

/// When a lane's commits began to fail, in monotonic time. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct LaneState {
    since: Arc<Mutex<Option<Duration>>>,
}

impl LaneState {
    fn failing(&self, now: Duration) {
        self.since.lock().get_or_insert(now);
    }

    fn committed(&self) {
        *self.since.lock() = None;
    }

    pub(super) fn since(&self) -> Option<Duration> {
        *self.since.lock()
    }
}

/// Runs a lane to its end. A panic leaves buffers that no lane will commit, so the service ends.
pub(super) async fn watch(lane: Lane) {
    let (number, health) = (lane.number, lane.health.clone());
    if AssertUnwindSafe(lane.run()).catch_unwind().await.is_err() {
        health.escalate(&format!("lane {number} of the database panicked"));
    }
}

impl Lane {
    async fn run(self) {
        let mut connection = self.store.lane().await.ok();
        let mut opened = self.clock.monotonic();
        while let Some(taken) = self.queue.take(self.number, &*self.clock).await {
            if self.clock.monotonic().saturating_sub(opened) > CONNECTION_LIFE {
                (connection, opened) = (None, self.clock.monotonic());
            }
            self.commit(&mut connection, taken).await;
            if self.number == 0 {
                self.queue.first_finished();
            }
        }
    }

    /// Commits the buffers; splits them in half if a part cannot be written.
    async fn commit(&self, connection: &mut Option<LaneConnection>, taken: Vec<(Uuid, Buffer)>) {
        let mut parts = vec![taken];
        while let Some(mut part) = parts.pop() {
            let batches: Vec<&Batch> = part.iter().map(|(_, buffer)| buffer.batch()).collect();
            match self.try_commit(connection, &batches).await {
                Ok(()) => {
                    let done: Vec<_> = part.iter().map(|(key, buffer)| (*key, buffer.weight())).collect();
                    for (_, buffer) in part {
                        buffer.committed(&self.topics);
                    }
                    self.queue.done(done.into_iter());
                }
                Err(CommitRefusal::Poisoned(text)) if part.len() == 1 => {
                    if let Some((key, buffer)) = part.pop() {
                        kernel::warn_once_a_minute!("lane.rows_refused", %key, cause = text, "failed to write rows");
                        let bytes = buffer.weight();
                        self.queue.poison(key, &text);
                        buffer.refused(&WriteError::Poisoned(text));
                        self.queue.done(std::iter::once((key, bytes)));
                    }
                }
                Err(CommitRefusal::Poisoned(_) | CommitRefusal::NoPartition) => {
                    let second = part.split_off(part.len() / 2);
                    parts.push(second);
                    parts.push(part);
                }
                Err(CommitRefusal::Fenced) => {
                    self.health.escalate("another instance has taken over the lease");
                    // First, so that a notified writer finds the queue closed.
                    self.queue.fence();
                    for (_, buffer) in part.into_iter().chain(parts.drain(..).flatten()) {
                        buffer.refused(&WriteError::Fenced);
                    }
                }
            }
        }
    }

    /// Commits, and resends the same batch while the database is unavailable.
    async fn try_commit(
        &self,
        connection: &mut Option<LaneConnection>,
        batches: &[&Batch],
    ) -> Result<(), CommitRefusal> {
        let (mut failures, mut made) = (0_u32, false);
        loop {
            let attempt = match connection {
                Some(open) => open.commit_all(self.lease, batches).await,
                None => match self.store.lane().await {
                    Ok(open) => connection.insert(open).commit_all(self.lease, batches).await,
                    Err(error) => Err(LaneError::Unavailable(error)),
                },
            };
            match attempt {
                Ok(()) => {
                    self.state.committed();
                    return Ok(());
                }
                Err(LaneError::Fenced) => return Err(CommitRefusal::Fenced),
                Err(LaneError::Poisoned(text)) => {
                    // The database answers, so only these rows are at fault.
                    self.state.committed();
                    return Err(CommitRefusal::Poisoned(text));
                }
                Err(LaneError::NoPartition(days)) => {
                    // The clock has leaped since partitions were created ahead.
                    match self.store.make_partitions(&days).await {
                        Ok(()) if !made => {
                            made = true;
                            tracing::info!(?days, "created partitions on demand");
                            continue;
                        }
                        // The partition exists but is detached: each stream can be written to its table by name.
                        Ok(()) if batches.len() > 1 => return Err(CommitRefusal::NoPartition),
                        Ok(()) => {}
                        Err(error) => tracing::warn!(?days, %error, "failed to create partitions; retrying"),
                    }
                    self.state.failing(self.clock.monotonic());
                    failures = failures.saturating_add(1);
                    self.clock.sleep(backoff(PAUSE, failures, PAUSE_MAX)).await;
                }
                Err(LaneError::Unavailable(error)) => {
                    tracing::warn!(lane = self.number, %error, "failed to commit a batch; retrying");
                    *connection = None;
                    self.state.failing(self.clock.monotonic());
                    failures = failures.saturating_add(1);
                    self.clock.sleep(backoff(PAUSE, failures, PAUSE_MAX)).await;
                }
            }
        }
    }
}

enum CommitRefusal {
    Fenced,
    Poisoned(String),
    /// One of several streams has events on a day whose partition is being dropped.
    NoPartition,
}
