//! Collects what a turn writes and hands it to the lanes: at the end of the first poll, then as it coalesces.
//!
//! A turn that never waits is one commit: nothing is handed over before it gives way or ends.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use engine::ports::{Journal, JournalError, StepOutcome, StepRecord, TextSink};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use store::RunStatus;
use store::batch::{Batch, ItemRow, RunUpdate, StepRow};
use tokio::sync::{Notify, oneshot};
use wire::chat::ChatEvent;
use wire::sse;

use super::message::Message;
use super::resume::Resumed;
use super::text::{json, timestamp};
use super::{Turn, TurnPorts};
use crate::db::{EventFrames, Then, WriteError};

/// Longest time that a piece waits for more of them.
const COALESCE: Duration = Duration::from_millis(40);
/// Bytes of text that are handed over without waiting for more.
const COALESCE_BYTES: usize = 512;

/// What a turn writes, on its way to the lanes.
#[derive(Clone)]
pub(super) struct TurnWriter {
    inner: Arc<Inner>,
}

struct Inner {
    turn: Turn,
    ports: TurnPorts,
    stream: String,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    batch: Batch,
    frames: String,
    first_seq: u64,
    next_seq: u64,
    message: Option<Message>,
    receipts: Vec<oneshot::Sender<Result<(), WriteError>>>,
    /// When the pieces that wait are due, in monotonic time.
    due: Option<Duration>,
    lost: Option<WriteError>,
}

impl TurnWriter {
    pub(super) fn new(turn: Turn, ports: TurnPorts, resumed: Resumed) -> Self {
        let state = State {
            batch: Batch::default(),
            frames: String::new(),
            first_seq: resumed.next_seq,
            next_seq: resumed.next_seq,
            message: resumed.message,
            receipts: Vec::new(),
            due: None,
            lost: None,
        };
        let stream = turn.stream.to_string();
        let inner = Inner { turn, ports, stream, state: Mutex::new(state), changed: Notify::new() };
        Self { inner: Arc::new(inner) }
    }

    /// Notes that the run has begun; goes out with whatever is handed over first.
    pub(super) fn started(&self) {
        let update = self.update(RunStatus::Running, None, None, false);
        self.inner.state.lock().batch.updates.push(update);
        self.inner.changed.notify_one();
    }

    /// Hands over what is due, whenever it is; never ends.
    pub(super) async fn keep_flushing(&self) {
        loop {
            self.inner.changed.notified().await;
            let due = self.inner.state.lock().due;
            let wait = due.map(|due| due.saturating_sub(self.inner.ports.clock.monotonic()));
            if let Some(wait) = wait.filter(|wait| !wait.is_zero()) {
                self.inner.ports.clock.sleep(wait).await;
            }
            self.flush();
        }
    }

    /// Hands everything over.
    fn flush(&self) {
        let mut state = self.inner.state.lock();
        let events = state.message.as_mut().map(Message::tell).unwrap_or_default();
        self.inner.push(&mut state, &events);
        state.due = None;
        self.inner.hand_over(&mut state, false);
    }

    /// The message's text so far.
    pub(super) fn text(&self) -> Option<String> {
        self.inner.state.lock().message.as_ref().map(|message| message.text().to_owned())
    }

    /// Whether readers were told of a message.
    pub(super) fn has_message(&self) -> bool {
        self.inner.state.lock().message.as_ref().is_some_and(|m| m.is_begun() || !m.text().is_empty())
    }

    /// Appends to the message, which is begun by its first piece.
    fn append(&self, piece: &str) -> Result<(), kernel::RandomError> {
        let Inner { turn, ports, .. } = &*self.inner;
        let mut state = self.inner.state.lock();
        let first = state.message.is_none();
        if first {
            let created_at = timestamp(ports.clock.now());
            state.message = Some(Message::new(ports.ids.item()?, turn.thread, created_at, turn.dialect));
        }
        let Some(message) = state.message.as_mut() else { return Ok(()) };
        message.append(piece);
        if !message.is_begun() {
            // The first piece goes out at once: as soon as the workflow gives way.
            self.inner.changed.notify_one();
            return Ok(());
        }
        if message.untold() >= COALESCE_BYTES {
            drop(state);
            self.flush();
        } else if state.due.is_none() {
            state.due = Some(ports.clock.monotonic() + COALESCE);
            self.inner.changed.notify_one();
        }
        Ok(())
    }

    /// Appends a whole text.
    pub(super) fn say(&self, text: &str) -> Result<(), kernel::RandomError> {
        self.append(text)
    }

    /// A stopped turn: what readers were told is kept as the message.
    pub(super) fn keep_what_was_told(&self) {
        if let Some(message) = &mut self.inner.state.lock().message {
            message.keep_what_was_told();
        }
    }

    /// Completes the message, stores it and ends the run; waits for the commit.
    pub(super) async fn end(&self, end: End) -> Result<(), WriteError> {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            if end.with_message
                && let Some(mut message) = state.message.take()
            {
                let events = message.finish();
                state.batch.items.push(ItemRow {
                    thread_id: self.inner.turn.thread,
                    id: message.id(),
                    content: json(&message.item()),
                });
                self.inner.push(&mut state, &events);
            }
            state.batch.items.extend(end.items);
            self.inner.push(&mut state, &end.events);
            let update = self.update(end.status, end.output, end.error, true);
            state.batch.updates.push(update);
            state.receipts.push(done);
            self.inner.hand_over(&mut state, true);
        }
        // A receipt that was dropped was not taken, because of what became of earlier rows.
        committed.await.unwrap_or_else(|_| {
            let lost = self.inner.state.lock().lost.clone();
            Err(lost.unwrap_or(WriteError::Closed))
        })
    }

    fn update(
        &self,
        status: RunStatus,
        output: Option<String>,
        error: Option<String>,
        finished: bool,
    ) -> RunUpdate {
        let now = self.inner.ports.clock.now();
        RunUpdate {
            id: self.inner.turn.run,
            status,
            started_at: Some(now),
            output,
            error,
            finished_at: finished.then_some(now),
        }
    }
}

/// How a turn ends.
pub(super) struct End {
    pub(super) status: RunStatus,
    /// Whether the message is completed and stored; a failed turn's is not.
    pub(super) with_message: bool,
    /// Events behind the message's.
    pub(super) events: Vec<ChatEvent>,
    /// Items that no client sees.
    pub(super) items: Vec<ItemRow>,
    pub(super) output: Option<String>,
    pub(super) error: Option<String>,
}

impl Inner {
    fn push(&self, state: &mut State, events: &[ChatEvent]) {
        for event in events {
            let seq = state.next_seq;
            sse::push_event(&mut state.frames, &self.stream, seq, &json(event));
            state.next_seq += 1;
        }
    }

    fn hand_over(&self, state: &mut State, end: bool) {
        let told = state.next_seq > state.first_seq;
        if state.batch.is_empty() && !told && !end && state.receipts.is_empty() {
            return;
        }
        let events = (told || end).then(|| EventFrames {
            stream: self.turn.stream,
            first_seq: state.first_seq,
            last_seq: state.next_seq - 1,
            frames: std::mem::take(&mut state.frames),
            end,
        });
        state.first_seq = state.next_seq;
        let receipts = std::mem::take(&mut state.receipts);
        let batch = std::mem::take(&mut state.batch);
        let then: Then = Box::new(move |outcome| {
            for receipt in receipts {
                let _ = receipt.send(outcome.clone());
            }
        });
        if let Err(error) = self.ports.db.submit_then(self.turn.run, batch, events, then) {
            state.lost = Some(error);
        }
    }
}

#[async_trait]
impl TextSink for TurnWriter {
    async fn write(&self, piece: &str) {
        if self.append(piece).is_err() {
            tracing::error!("no random bytes for a message's id");
        }
        self.inner.ports.db.room(self.inner.turn.run).await;
    }
}

impl Journal for TurnWriter {
    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>> {
        let (done, committed) = oneshot::channel();
        {
            let mut state = self.inner.state.lock();
            state.batch.steps.push(step_row(self.inner.turn.run, row));
            state.receipts.push(done);
            if let Some(lost) = &state.lost {
                let text = lost.to_string();
                return async { Err(JournalError(text)) }.boxed();
            }
        }
        let writer = self.clone();
        async move {
            // Only now does something depend on the row.
            writer.flush();
            let committed = committed.await.unwrap_or(Err(WriteError::Closed));
            committed.map_err(|error| JournalError(error.to_string()))
        }
        .boxed()
    }
}

fn step_row(run: uuid::Uuid, record: StepRecord) -> StepRow {
    let (status, result, error, finished_at) = match record.outcome {
        StepOutcome::Started => ("started", None, None, None),
        StepOutcome::Succeeded { result, finished_at } => {
            ("succeeded", Some(result.to_string()), None, Some(finished_at))
        }
        StepOutcome::Failed { error, finished_at } => {
            let error = serde_json::json!({"code": error.code.as_str(), "message": error.message});
            ("failed", None, Some(error.to_string()), Some(finished_at))
        }
    };
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    StepRow {
        run_id: run,
        node: record.node,
        visit: number(record.visit),
        attempt: number(record.attempt),
        step: number(record.step),
        begun: record.begun,
        status,
        input_digest: record.input_digest.to_vec(),
        result,
        error,
        started_at: record.started_at,
        finished_at,
    }
}
