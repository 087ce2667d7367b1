//! The one queue in front of the lanes.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;
use store::batch::Batch;
use tokio::sync::Notify;
use uuid::Uuid;

use super::WriteError;
use super::buffer::{Buffer, EventFrames, Then};

/// How long what is ready waits behind a commit of the first lane before the next one takes it.
const PATIENCE: Duration = Duration::from_millis(2);
/// Keys in one commit.
const KEYS: usize = 256;
/// Bytes in one commit, roughly.
const COMMIT_BYTES: usize = 4 << 20;
/// Bytes that may wait before nothing new is begun.
const NEW_WORK_BYTES: usize = 64 << 20;
/// Keys that may wait before nothing new is begun.
const NEW_WORK_KEYS: usize = 20_000;
/// Bytes that may wait under one key before its writer pauses.
const KEY_BYTES: usize = 1 << 20;

#[derive(Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    work: Notify,
    progress: Notify,
    /// Calls the other lanes when the first one has begun a commit.
    begun: Notify,
    /// Commits that the first lane has begun and finished.
    started: AtomicU64,
    finished: AtomicU64,
}

#[derive(Default)]
struct State {
    waiting: HashMap<Uuid, Waiting>,
    /// Keys with a buffer that no lane holds.
    ready: VecDeque<Uuid>,
    poisoned: HashMap<Uuid, String>,
    bytes: usize,
    in_flight: usize,
    closed: Option<WriteError>,
}

#[derive(Default)]
struct Waiting {
    buffer: Option<Buffer>,
    in_flight: bool,
    bytes: usize,
}

impl Queue {
    pub(super) fn push(
        &self,
        key: Uuid,
        batch: Batch,
        events: Option<EventFrames>,
        then: Option<Then>,
    ) -> Result<(), WriteError> {
        {
            let mut state = self.state.lock();
            if let Some(error) = &state.closed {
                return Err(error.clone());
            }
            if let Some(text) = state.poisoned.get(&key) {
                return Err(WriteError::Poisoned(text.clone()));
            }
            let waiting = state.waiting.entry(key).or_default();
            let fresh = waiting.buffer.is_none();
            let buffer = waiting.buffer.get_or_insert_default();
            let before = if fresh { 0 } else { buffer.weight() };
            buffer.push(batch, events, then);
            let grown = buffer.weight().saturating_sub(before);
            waiting.bytes += grown;
            let ready = fresh && !waiting.in_flight;
            state.bytes += grown;
            if ready {
                state.ready.push_back(key);
            }
        }
        self.work.notify_one();
        Ok(())
    }

    /// What lane `lane` commits next; `None` when the queue is closed and empty.
    ///
    /// Few large commits cost least, so the first lane takes whatever is there, and lane n only what has waited for n
    /// times [`PATIENCE`] behind a commit of the first: on a slow disk all of them work, on a fast one none but the
    /// first.
    pub(super) async fn take(&self, lane: u32, clock: &dyn Clock) -> Option<Vec<(Uuid, Buffer)>> {
        if lane == 0 { self.take_first().await } else { self.take_late(PATIENCE * lane, clock).await }
    }

    /// The first lane has finished a commit.
    pub(super) fn first_finished(&self) {
        self.finished.fetch_add(1, Ordering::Release);
    }

    async fn take_late(&self, patience: Duration, clock: &dyn Clock) -> Option<Vec<(Uuid, Buffer)>> {
        loop {
            let begun = self.begun.notified();
            {
                let state = self.state.lock();
                if state.closed.is_some() && state.waiting.is_empty() {
                    return None;
                }
            }
            let finished = self.finished.load(Ordering::Acquire);
            if self.started.load(Ordering::Acquire) == finished {
                begun.await;
                continue;
            }
            clock.sleep(patience).await;
            // A first lane that has died is one that never finishes.
            if self.finished.load(Ordering::Acquire) == finished {
                let taken = self.state.lock().take();
                if !taken.is_empty() {
                    return Some(taken);
                }
            }
        }
    }

    async fn take_first(&self) -> Option<Vec<(Uuid, Buffer)>> {
        loop {
            let work = self.work.notified();
            {
                let mut state = self.state.lock();
                let taken = state.take();
                if !taken.is_empty() {
                    drop(state);
                    self.started.fetch_add(1, Ordering::Release);
                    self.begun.notify_waiters();
                    return Some(taken);
                }
                if state.closed.is_some() && state.waiting.is_empty() {
                    drop(state);
                    self.begun.notify_waiters();
                    return None;
                }
            }
            work.await;
        }
    }

    /// A lane is done with these keys.
    pub(super) fn done(&self, keys: impl Iterator<Item = (Uuid, usize)>) {
        {
            let mut state = self.state.lock();
            for (key, bytes) in keys {
                state.done(key, bytes);
            }
        }
        self.work.notify_one();
        self.progress.notify_waiters();
    }

    /// Takes nothing more of this key; what waits behind its poisoned rows is refused with them.
    pub(super) fn poison(&self, key: Uuid, text: &str) {
        let behind = {
            let mut state = self.state.lock();
            state.poisoned.insert(key, text.to_owned());
            state.withdraw(key)
        };
        if let Some(buffer) = behind {
            buffer.refused(&WriteError::Poisoned(text.to_owned()));
        }
    }

    pub(super) fn forgive(&self, key: Uuid) {
        self.state.lock().poisoned.remove(&key);
    }

    pub(super) async fn room(&self, key: Uuid) {
        loop {
            let progress = self.progress.notified();
            {
                let state = self.state.lock();
                let own = state.waiting.get(&key).map_or(0, |waiting| waiting.bytes);
                if own < KEY_BYTES && state.bytes < 2 * NEW_WORK_BYTES || state.closed.is_some() {
                    return;
                }
            }
            progress.await;
        }
    }

    pub(super) fn takes_new_work(&self) -> bool {
        let state = self.state.lock();
        state.closed.is_none() && state.bytes < NEW_WORK_BYTES && state.waiting.len() < NEW_WORK_KEYS
    }

    /// Takes nothing more and waits until all is committed.
    pub(super) async fn close(&self) {
        self.state.lock().closed.get_or_insert(WriteError::Closed);
        self.work.notify_waiters();
        self.work.notify_one();
        self.begun.notify_waiters();
        self.idle().await;
    }

    /// Waits until nothing waits and no lane holds anything.
    pub(super) async fn idle(&self) {
        loop {
            let progress = self.progress.notified();
            if self.state.lock().waiting.is_empty() {
                return;
            }
            progress.await;
        }
    }

    /// Refuses everything, now and later.
    pub(super) fn fence(&self) {
        let buffers: Vec<Buffer> = {
            let mut state = self.state.lock();
            state.closed = Some(WriteError::Fenced);
            state.ready.clear();
            state.bytes = 0;
            state.waiting.drain().filter_map(|(_, waiting)| waiting.buffer).collect()
        };
        for buffer in buffers {
            buffer.refused(&WriteError::Fenced);
        }
        self.work.notify_waiters();
        self.begun.notify_waiters();
        self.progress.notify_waiters();
    }
}

impl State {
    fn take(&mut self) -> Vec<(Uuid, Buffer)> {
        let mut taken = Vec::new();
        let mut bytes = 0;
        while taken.len() < KEYS && bytes < COMMIT_BYTES {
            let Some(key) = self.ready.pop_front() else { break };
            let Some(waiting) = self.waiting.get_mut(&key) else { continue };
            let Some(mut buffer) = waiting.buffer.take() else { continue };
            waiting.in_flight = true;
            bytes += buffer.weight();
            buffer.seal();
            taken.push((key, buffer));
        }
        self.in_flight += taken.len();
        taken
    }

    /// What waits under a key that a lane holds.
    fn withdraw(&mut self, key: Uuid) -> Option<Buffer> {
        let waiting = self.waiting.get_mut(&key)?;
        let buffer = waiting.buffer.take()?;
        let bytes = buffer.weight();
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        Some(buffer)
    }

    fn done(&mut self, key: Uuid, bytes: usize) {
        self.in_flight = self.in_flight.saturating_sub(1);
        let Some(waiting) = self.waiting.get_mut(&key) else { return };
        waiting.in_flight = false;
        waiting.bytes = waiting.bytes.saturating_sub(bytes);
        self.bytes = self.bytes.saturating_sub(bytes);
        if waiting.buffer.is_some() {
            self.ready.push_back(key);
        } else {
            self.waiting.remove(&key);
        }
    }
}
