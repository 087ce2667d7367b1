//! The queue in front of all lanes.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;
use store::batch::Batch;
use tokio::sync::Notify;
use uuid::Uuid;

use super::buffer::{Buffer, EventFrames, Then};
use super::waiting::PendingBuffers;
use super::{WriteError, WriterKey};

/// Time that ready writes wait for the first lane's commit before the next lane takes them.
const PATIENCE: Duration = Duration::from_millis(2);
/// Maximum pending bytes for new work to start.
const NEW_WORK_BYTES: usize = 64 << 20;
/// Maximum pending keys for new work to start.
const NEW_WORK_KEYS: usize = 20_000;
/// Pending bytes per key at which its writer pauses.
const KEY_BYTES: usize = 1 << 20;
/// Pending bytes per workspace at which its writers pause.
const WORKSPACE_BYTES: usize = 16 << 20;
/// Minimum number of lanes at which the last one is reserved for workspaces that no other lane commits for.
const LANES_WITH_RESERVE: u32 = 3;

pub(super) struct Queue {
    lanes: u32,
    state: Mutex<QueueState>,
    work: Notify,
    progress: Notify,
    /// Wakes the other lanes when writes wait for the first lane's commit.
    late: Notify,
    /// Number of commits that the first lane has started and finished.
    started: AtomicU64,
    finished: AtomicU64,
}

#[derive(Default)]
struct QueueState {
    waiting: PendingBuffers,
    poisoned: HashMap<Uuid, String>,
    closed: Option<WriteError>,
}

impl Queue {
    /// Creates the queue for this many lanes.
    pub(super) fn new(lanes: u32) -> Self {
        Self {
            lanes,
            state: Mutex::default(),
            work: Notify::new(),
            progress: Notify::new(),
            late: Notify::new(),
            started: AtomicU64::new(0),
            finished: AtomicU64::new(0),
        }
    }

    pub(super) fn push(
        &self,
        key: WriterKey,
        batch: Batch,
        events: Option<EventFrames>,
        then: Option<Then>,
        despite_poison: bool,
    ) -> Result<(), WriteError> {
        let is_late = {
            let mut state = self.state.lock();
            if let Some(error) = &state.closed {
                return Err(error.clone());
            }
            if !despite_poison && let Some(text) = state.poisoned.get(&key.id) {
                return Err(WriteError::Poisoned(text.clone()));
            }
            state.waiting.push(key, |buffer| buffer.push(batch, events, then));
            self.is_late(&state)
        };
        self.work.notify_one();
        if is_late {
            self.late.notify_waiters();
        }
        Ok(())
    }

    /// Returns the next commit for lane `lane`; `None` when the queue is closed and empty.
    ///
    /// A few large commits cost least, so the first lane takes everything that is ready, and lane n takes only writes
    /// that have waited n times [`PATIENCE`] for the first lane's commit. On a slow disk all lanes work, on a fast one
    /// only the first. A workspace that no lane commits for waits at most one [`PATIENCE`] for another workspace's
    /// commit.
    pub(super) async fn take(&self, lane: u32, clock: &dyn Clock) -> Option<Vec<(Uuid, Buffer)>> {
        if lane == 0 { self.take_first().await } else { self.take_late(lane, clock).await }
    }

    /// Notes that the first lane has finished a commit.
    pub(super) fn first_finished(&self) {
        self.finished.fetch_add(1, Ordering::Release);
    }

    /// Whether ready writes wait for the first lane's commit.
    fn is_late(&self, state: &QueueState) -> bool {
        state.waiting.has_ready()
            && self.started.load(Ordering::Acquire) != self.finished.load(Ordering::Acquire)
    }

    async fn take_late(&self, lane: u32, clock: &dyn Clock) -> Option<Vec<(Uuid, Buffer)>> {
        let reserved = self.lanes >= LANES_WITH_RESERVE && lane + 1 == self.lanes;
        loop {
            let called = self.late.notified();
            {
                let state = self.state.lock();
                if state.closed.is_some() && state.waiting.is_empty() {
                    return None;
                }
            }
            let finished = self.finished.load(Ordering::Acquire);
            let is_late = self.is_late(&self.state.lock());
            if !is_late {
                called.await;
                continue;
            }
            clock.sleep(PATIENCE).await;
            if let Some(taken) = self.take_behind(finished, PendingBuffers::take_of_others) {
                return Some(taken);
            }
            if reserved || self.finished.load(Ordering::Acquire) != finished {
                continue;
            }
            clock.sleep(PATIENCE * (lane - 1)).await;
            if let Some(taken) = self.take_behind(finished, PendingBuffers::take) {
                return Some(taken);
            }
        }
    }

    /// Takes writes for a late lane if the first lane has not finished since. A dead first lane counts as one that
    /// never finishes.
    fn take_behind(
        &self,
        finished: u64,
        take: fn(&mut PendingBuffers) -> Vec<(Uuid, Buffer)>,
    ) -> Option<Vec<(Uuid, Buffer)>> {
        if self.finished.load(Ordering::Acquire) != finished {
            return None;
        }
        let taken = take(&mut self.state.lock().waiting);
        (!taken.is_empty()).then_some(taken)
    }

    async fn take_first(&self) -> Option<Vec<(Uuid, Buffer)>> {
        loop {
            let work = self.work.notified();
            {
                let mut state = self.state.lock();
                let taken = state.waiting.take();
                if !taken.is_empty() {
                    // Under the lock: writes pushed from now on wait for this commit.
                    self.started.fetch_add(1, Ordering::Release);
                    let is_late = self.is_late(&state);
                    drop(state);
                    if is_late {
                        self.late.notify_waiters();
                    }
                    return Some(taken);
                }
                if state.closed.is_some() && state.waiting.is_empty() {
                    drop(state);
                    self.late.notify_waiters();
                    return None;
                }
            }
            work.await;
        }
    }

    /// Releases these keys after a lane's commit.
    pub(super) fn done(&self, keys: impl Iterator<Item = (Uuid, usize)>) {
        let is_late = {
            let mut state = self.state.lock();
            for (key, bytes) in keys {
                state.waiting.done(key, bytes);
            }
            self.is_late(&state)
        };
        if is_late {
            self.late.notify_waiters();
        }
        self.work.notify_one();
        self.progress.notify_waiters();
    }

    /// Refuses further writes under this key, including those pending after its poisoned rows.
    pub(super) fn poison(&self, key: Uuid, text: &str) {
        let behind = {
            let mut state = self.state.lock();
            state.poisoned.insert(key, text.to_owned());
            state.waiting.withdraw(key)
        };
        if let Some(buffer) = behind {
            buffer.refused(&WriteError::Poisoned(text.to_owned()));
        }
    }

    pub(super) fn forgive(&self, key: Uuid) {
        self.state.lock().poisoned.remove(&key);
    }

    /// Whether the pending writes of the key, its workspace and all keys are within the limits.
    pub(super) fn has_room(&self, key: WriterKey) -> bool {
        let state = self.state.lock();
        let room = state.waiting.bytes_of(key.id) < KEY_BYTES
            && state.waiting.bytes_of_workspace(key.workspace) < WORKSPACE_BYTES
            && state.waiting.bytes() < 2 * NEW_WORK_BYTES;
        room || state.closed.is_some()
    }

    pub(super) async fn room(&self, key: WriterKey) {
        while !self.has_room(key) {
            let progress = self.progress.notified();
            // Checked again, because progress may have happened in between.
            if self.has_room(key) {
                return;
            }
            progress.await;
        }
    }

    pub(super) fn takes_new_work(&self) -> bool {
        let state = self.state.lock();
        let waiting = &state.waiting;
        state.closed.is_none() && waiting.bytes() < NEW_WORK_BYTES && waiting.keys() < NEW_WORK_KEYS
    }

    /// Accepts no more writes and waits until everything is committed.
    pub(super) async fn close(&self) {
        self.state.lock().closed.get_or_insert(WriteError::Closed);
        self.work.notify_waiters();
        self.work.notify_one();
        self.late.notify_waiters();
        self.idle().await;
    }

    /// Waits until the queue is empty and all lanes are idle.
    pub(super) async fn idle(&self) {
        loop {
            let progress = self.progress.notified();
            if self.state.lock().waiting.is_empty() {
                return;
            }
            progress.await;
        }
    }

    /// Refuses all pending and future writes.
    pub(super) fn fence(&self) {
        let buffers: Vec<Buffer> = {
            let mut state = self.state.lock();
            state.closed = Some(WriteError::Fenced);
            state.waiting.drain()
        };
        for buffer in buffers {
            buffer.refused(&WriteError::Fenced);
        }
        self.work.notify_waiters();
        self.late.notify_waiters();
        self.progress.notify_waiters();
    }
}
