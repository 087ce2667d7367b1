//! Collects a run's writes and hands them to the lanes: at the end of the first poll, then coalesced.
//!
//! A run that never waits is one commit: no handover happens before it yields or ends. Its start may be part of it.

mod output;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use engine::ports::{Journal, JournalError, StepRecord};
use futures_util::FutureExt;
use futures_util::future::{self, BoxFuture};
use kernel::backoff;
use parking_lot::Mutex;
use store::batch::{Batch, CutRow, QueueRow, RunUpdate};
use store::{FoundItem, RunState, StoreError};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

use super::budget::BudgetAccount;
use super::early_start::{EarlyStart, StartOutcome};
use super::journal::{outbox_row, question_row, step_row};
use super::pace::Slice;
use super::{EventWriter, Frames, RunPorts, Urgency};
use crate::lanes::{EventFrames, Then, WriteError, WriterKey};

/// Maximum time that a piece waits to be coalesced with further ones.
const COALESCE: Duration = Duration::from_millis(40);
/// Bytes of text after which a run waits for room, if the database does not keep up.
const ROOM_INTERVAL: usize = 1 << 10;
/// First pause after a lookup failed; doubles up to [`LOOKUP_PAUSE_MAX`].
const LOOKUP_PAUSE: Duration = Duration::from_millis(100);
const LOOKUP_PAUSE_MAX: Duration = Duration::from_secs(2);

/// A run's writes on their way to the lanes.
pub(crate) struct RunWriter<T> {
    inner: Arc<WriterInner<T>>,
}

impl<T> Clone for RunWriter<T> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

struct WriterInner<T> {
    key: WriterKey,
    stream: Uuid,
    slice: Slice,
    ports: RunPorts,
    state: Mutex<WriterState<T>>,
    changed: Notify,
    /// Set if the run's start is stored with its first writes.
    start: Option<StartOutcome>,
    thread_change: tokio::sync::Mutex<()>,
    /// Bytes of text since the run last waited for room.
    unchecked: AtomicUsize,
    /// The account that pays for the run's models.
    account: Option<BudgetAccount>,
    /// Whether events are retained as long as the run.
    keeps_events: bool,
}

struct WriterState<T> {
    /// The run's start, until it is handed over with the first writes.
    early: Option<Box<EarlyStart>>,
    batch: Batch,
    frames: Frames,
    events: T,
    receipts: Vec<oneshot::Sender<Result<(), WriteError>>>,
    /// When pending writes are due, in monotonic time.
    due: Option<Duration>,
    lost: Option<WriteError>,
    /// Existing items by key, as last read.
    found: HashMap<String, Option<FoundItem>>,
    /// Whether items were cut from the thread without a confirmed commit.
    is_cut: bool,
}

/// The status, output and error of a run.
pub(crate) struct End {
    pub(crate) status: RunState,
    /// JSON.
    pub(crate) output: Option<String>,
    /// JSON.
    pub(crate) error: Option<String>,
}

/// Identifies a run to its writer.
pub(crate) struct WriterIdentity {
    pub(crate) key: WriterKey,
    /// The account that pays for the run's models.
    pub(crate) account: Option<BudgetAccount>,
    /// Whether events are retained as long as the run.
    pub(crate) keeps_events: bool,
}

impl<T: EventWriter> RunWriter<T> {
    /// `early`: the run's start, if not yet stored.
    pub(crate) fn new(
        identity: WriterIdentity,
        stream: Uuid,
        ports: RunPorts,
        next_seq: u64,
        events: T,
        early: Option<Box<EarlyStart>>,
    ) -> Self {
        let WriterIdentity { key, account, keeps_events } = identity;
        let start = early.as_deref().map(EarlyStart::outcome);
        let state = WriterState {
            early,
            batch: Batch::default(),
            frames: Frames::new(stream.to_string(), next_seq),
            events,
            receipts: Vec::new(),
            due: None,
            lost: None,
            found: HashMap::new(),
            is_cut: false,
        };
        let inner = WriterInner {
            key,
            stream,
            slice: Slice::default(),
            ports,
            state: Mutex::new(state),
            changed: Notify::new(),
            start,
            thread_change: tokio::sync::Mutex::default(),
            unchecked: AtomicUsize::new(0),
            account,
            keeps_events,
        };
        Self { inner: Arc::new(inner) }
    }

    /// The account that pays for the run's models.
    pub(crate) fn account(&self) -> Option<BudgetAccount> {
        self.inner.account.clone()
    }

    /// Notes that the run has started; handed over with the next writes.
    pub(crate) fn started(&self) {
        let end = End { status: RunState::Running, output: None, error: None };
        let update = self.update(end);
        let mut state = self.inner.state.lock();
        state.batch.updates.push(update);
        self.inner.due(&mut state, Duration::ZERO);
    }

    /// Cuts items from the thread; handed over with the next writes.
    pub(crate) fn cut(&self, row: CutRow) {
        let mut state = self.inner.state.lock();
        state.batch.cuts.push(row);
        state.is_cut = true;
    }

    pub(super) fn run(&self) -> Uuid {
        self.inner.key.id
    }

    /// Waits until the start is settled; returns whether the database refused it, in which case the run does not exist.
    pub(super) async fn start_was_refused(&self) -> bool {
        match self.inner.start.clone() {
            Some(start) => !start.settled().await,
            None => false,
        }
    }

    /// Reads or changes the pending events.
    pub(crate) fn with<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.inner.state.lock().events)
    }

    /// Locked while the thread is changed, or read for an event.
    pub(crate) async fn thread_change(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.inner.thread_change.lock().await
    }

    /// Changes the events and hands them over now.
    pub(crate) fn change_and_flush(&self, change: impl FnOnce(&mut T)) {
        self.note(|events| {
            change(events);
            Urgency::Now
        });
    }

    /// Hands over writes when they are due; never ends.
    pub(super) async fn keep_flushing(&self) {
        let WriterInner { ports, changed, .. } = &*self.inner;
        loop {
            let due = self.inner.state.lock().due;
            let Some(due) = due else {
                changed.notified().await;
                continue;
            };
            let wait = due.saturating_sub(ports.clock.monotonic());
            if wait.is_zero() {
                self.flush();
                continue;
            }
            tokio::select! {
                () = ports.clock.sleep(wait) => self.flush(),
                // The due time may be earlier now.
                () = changed.notified() => {}
            }
        }
    }

    /// Hands over everything.
    fn flush(&self) {
        let mut state = self.inner.state.lock();
        state.due = None;
        self.inner.hand_over(&mut state, false);
    }

    /// Notes an event and schedules its handover in time for readers.
    fn note(&self, happens: impl FnOnce(&mut T) -> Urgency) {
        self.note_with(|state| happens(&mut state.events));
    }

    fn note_with(&self, happens: impl FnOnce(&mut WriterState<T>) -> Urgency) {
        let mut state = self.inner.state.lock();
        match happens(&mut state) {
            Urgency::Whenever => {}
            Urgency::Next => self.inner.due(&mut state, Duration::ZERO),
            Urgency::Soon => self.inner.due(&mut state, COALESCE),
            Urgency::Now => {
                state.due = None;
                self.inner.hand_over(&mut state, false);
            }
        }
    }

    /// Ends the run and waits for the commit. `placed`: the run frees its slot in its workflow.
    pub(crate) async fn end(&self, end: End, placed: bool) -> Result<(), WriteError> {
        self.last(self.update(end), None, placed).await
    }

    /// Parks the run for the `parking`th time and waits for the commit.
    pub(crate) async fn park(&self, row: QueueRow, parking: i32, placed: bool) -> Result<(), WriteError> {
        let waiting = End { status: RunState::Waiting, output: None, error: None };
        self.last(RunUpdate { parking, ..self.update(waiting) }, Some(row), placed).await
    }

    async fn last(&self, end: RunUpdate, queued: Option<QueueRow>, placed: bool) -> Result<(), WriteError> {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            let WriterInner { account, ports, .. } = &*self.inner;
            let (account, now) = (account.as_ref(), ports.clock.now());
            let ends = queued.is_none();
            let rest = account.and_then(|account| ports.budgets.of_rest(account, self.run(), ends, now));
            state.batch.chat_usage.extend(rest);
            state.batch.updates.push(end);
            state.batch.queued.extend(queued);
            state.batch.left.extend(placed.then_some(self.inner.key.id));
            state.receipts.push(done);
            self.inner.hand_over(&mut state, queued.is_none());
        }
        // A dropped receipt means that the write was not accepted, because an earlier write failed.
        committed.await.unwrap_or_else(|_| {
            let lost = self.inner.state.lock().lost.clone();
            Err(lost.unwrap_or(WriteError::Closed))
        })
    }

    fn update(&self, end: End) -> RunUpdate {
        let now = self.inner.ports.clock.now();
        RunUpdate {
            id: self.inner.key.id,
            status: end.status,
            started_at: Some(now),
            output: end.output,
            error: end.error,
            finished_at: end.status.is_terminal().then_some(now),
            parking: 0,
        }
    }

    /// The slice that tells when the run must yield.
    pub(super) fn slice(&self) -> Slice {
        self.inner.slice.clone()
    }

    /// Hands over everything and waits for the commit. If the commit is lost, so is the node's row.
    async fn commit(&self) {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            state.receipts.push(done);
            self.inner.hand_over(&mut state, false);
        }
        if let Ok(Ok(())) = committed.await {
            self.inner.state.lock().is_cut = false;
        }
    }

    /// Changes the events, hands over everything and waits for the commit.
    pub(crate) async fn commit_with(&self, change: impl FnOnce(&mut T)) -> Result<(), WriteError> {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            change(&mut state.events);
            state.receipts.push(done);
            state.due = None;
            self.inner.hand_over(&mut state, false);
        }
        committed.await.unwrap_or_else(|_| {
            let lost = self.inner.state.lock().lost.clone();
            Err(lost.unwrap_or(WriteError::Closed))
        })
    }

    /// Repeats a query until the database answers.
    pub(crate) async fn ask<R, F>(&self, what: &str, query: impl Fn() -> F) -> R
    where
        F: Future<Output = Result<R, StoreError>>,
    {
        let clock = &self.inner.ports.clock;
        let mut failures = 0_u32;
        loop {
            match query().await {
                Ok(found) => return found,
                Err(error) => {
                    tracing::warn!(%error, what, "lookup failed; retrying");
                    failures = failures.saturating_add(1);
                    clock.sleep(backoff(LOOKUP_PAUSE, failures, LOOKUP_PAUSE_MAX)).await;
                }
            }
        }
    }

    /// Yields if the slice is used up, and waits for room.
    async fn room(&self) {
        self.give_way().await;
        self.inner.unchecked.store(0, Ordering::Relaxed);
        self.inner.ports.db.room(self.inner.key).await;
    }

    /// The same after a piece of text. All runs request room in one place, so small pieces share a request.
    async fn room_for_text(&self, bytes: usize) {
        let before = self.inner.unchecked.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) >= ROOM_INTERVAL {
            self.room().await;
        } else {
            self.give_way().await;
        }
    }

    async fn give_way(&self) {
        if self.inner.slice.is_spent(self.inner.ports.clock.monotonic()) {
            tokio::task::yield_now().await;
        }
    }
}

impl<T: EventWriter> WriterInner<T> {
    /// Makes pending writes due after at most `wait`.
    fn due(&self, state: &mut WriterState<T>, wait: Duration) {
        let at = self.ports.clock.monotonic() + wait;
        if state.due.is_none_or(|due| at < due) {
            state.due = Some(at);
            self.changed.notify_one();
        }
    }

    fn hand_over(&self, state: &mut WriterState<T>, end: bool) {
        state.events.write(&mut state.frames, &mut state.batch);
        let told = !state.frames.is_empty();
        if state.early.is_none() && state.batch.is_empty() && !told && !end && state.receipts.is_empty() {
            return;
        }
        let events = (told || end).then(|| {
            let (frames, first_seq, last_seq) = state.frames.take();
            EventFrames { stream: self.stream, first_seq, last_seq, frames, end, kept: self.keeps_events }
        });
        let receipts = std::mem::take(&mut state.receipts);
        let batch = std::mem::take(&mut state.batch);
        let then: Then = Box::new(move |outcome| {
            for receipt in receipts {
                let _ = receipt.send(outcome.clone());
            }
        });
        let (batch, events, then) = match state.early.take() {
            Some(early) => early.before(&self.ports.db, batch, events, then),
            None => (batch, events, then),
        };
        if let Err(error) = self.ports.db.submit_then(self.key, batch, events, then) {
            state.lost = Some(error);
        }
    }
}

impl<T: EventWriter> Journal for RunWriter<T> {
    fn begins(&self, row: &StepRecord) {
        self.note(|events| events.begins(row));
    }

    fn room(&self) -> Option<BoxFuture<'_, ()>> {
        let WriterInner { key, slice, ports, .. } = &*self.inner;
        let goes_on = !slice.is_spent(ports.clock.monotonic()) && ports.db.has_room(*key);
        (!goes_on).then(|| RunWriter::room(self).boxed())
    }

    fn started(&self) -> Option<BoxFuture<'_, Result<(), JournalError>>> {
        let start = self.inner.start.clone().filter(|start| !start.is_stored())?;
        self.flush();
        let stored = async move {
            let refused = || JournalError("the start of the run was refused".to_owned());
            if start.settled().await { Ok(()) } else { Err(refused()) }
        };
        Some(stored.boxed())
    }

    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>> {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            state.events.records(&row);
            state.batch.questions.extend(question_row(self.inner.key.id, &row));
            state.batch.outbox.extend(outbox_row(self.inner.key.id, &row));
            let WriterInner { account, ports, .. } = &*self.inner;
            let (account, now) = (account.as_ref(), ports.clock.now());
            let used = account.and_then(|account| ports.budgets.of_step(account, self.run(), &row, now));
            state.batch.chat_usage.extend(used);
            state.batch.steps.push(step_row(self.inner.key.id, row));
            state.receipts.push(done);
            // Delayed to coalesce writes, but not long: something may soon depend on the row.
            self.inner.due(&mut state, COALESCE);
            if let Some(lost) = &state.lost {
                return future::ready(Err(JournalError(lost.to_string()))).boxed();
            }
        }
        let writer = self.clone();
        async move {
            // Something depends on the row from now on.
            writer.flush();
            let committed = committed.await.unwrap_or(Err(WriteError::Closed));
            committed.map_err(|error| JournalError(error.to_string()))
        }
        .boxed()
    }
}
