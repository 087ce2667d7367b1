//! A start that is stored together with its run's first writes.

use store::batch::Batch;
use tokio::sync::{oneshot, watch};
use uuid::Uuid;

use super::start::StartRows;
use crate::lanes::{Database, EventFrames, Then, WriteError, WriterKey};
use crate::streams::Topics;

/// A start that is stored together with its run's first writes.
pub(crate) struct EarlyStart {
    run: Uuid,
    rows: StartRows,
    topic: Option<AbandonedUnlessStored>,
    acknowledge: oneshot::Sender<Result<(), WriteError>>,
    /// Whether the start is stored; `None` until the commit is settled.
    stored: watch::Sender<Option<bool>>,
}

/// Abandons the topic if the start is dropped or refused, so its reader learns that no events follow.
struct AbandonedUnlessStored {
    topics: Topics,
    stream: Uuid,
    stored: bool,
}

impl AbandonedUnlessStored {
    fn keep(mut self) {
        self.stored = true;
    }
}

impl Drop for AbandonedUnlessStored {
    fn drop(&mut self) {
        if !self.stored {
            self.topics.abandon(self.stream);
        }
    }
}

/// A receiver for whether an early start is stored.
#[derive(Clone)]
pub(crate) struct StartOutcome(watch::Receiver<Option<bool>>);

impl StartOutcome {
    /// Whether it is stored already.
    pub(crate) fn is_stored(&self) -> bool {
        *self.0.borrow() == Some(true)
    }

    /// Waits for the commit and returns whether the start is stored. If not, the run does not exist.
    pub(crate) async fn settled(mut self) -> bool {
        self.0.wait_for(Option::is_some).await.is_ok_and(|stored| *stored == Some(true))
    }
}

impl EarlyStart {
    /// Creates the start for a run that is handed over now, and its acknowledgement channel.
    pub(super) fn new(
        run: Uuid,
        rows: StartRows,
        topics: &Topics,
    ) -> (Box<Self>, oneshot::Receiver<Result<(), WriteError>>) {
        let _topic = topics.produce(rows.stream);
        let topic = AbandonedUnlessStored { topics: topics.clone(), stream: rows.stream, stored: false };
        let (acknowledge, acknowledged) = oneshot::channel();
        let early = Self { run, rows, topic: Some(topic), acknowledge, stored: watch::Sender::default() };
        // Boxed: the run needs it only briefly, but would reserve room for it for its whole life.
        (Box::new(early), acknowledged)
    }

    pub(crate) fn outcome(&self) -> StartOutcome {
        StartOutcome(self.stored.subscribe())
    }

    /// Prepends the start to its run's first writes, so one commit stores both. If that commit is refused because of
    /// its rows, the start is stored alone; further writes by the run stay refused until its driver has settled that.
    pub(crate) fn before(
        self: Box<Self>,
        db: &Database,
        writes: Batch,
        events: Option<EventFrames>,
        then: Then,
    ) -> (Batch, Option<EventFrames>, Then) {
        let (mut batch, first) = (self.rows.batch.clone(), self.rows.events.clone());
        batch.append(writes);
        let events = match (first, events) {
            (Some(first), Some(more)) => Some(first.followed_by(&more)),
            (first, more) => first.or(more),
        };
        let db = db.clone();
        let both: Then = Box::new(move |outcome| {
            match &outcome {
                Err(WriteError::Poisoned(_)) => self.submit_alone(&db),
                _ => self.settle(outcome.clone()),
            }
            then(outcome);
        });
        (batch, events, both)
    }

    fn submit_alone(self: Box<Self>, db: &Database) {
        let key = WriterKey { id: self.run, workspace: self.rows.workspace };
        let (batch, events) = (self.rows.batch.clone(), self.rows.events.clone());
        // A closed queue drops the closure, which refuses the start.
        let _ = db.submit_despite_poison(key, batch, events, Box::new(move |outcome| self.settle(outcome)));
    }

    fn settle(mut self: Box<Self>, outcome: Result<(), WriteError>) {
        if outcome.is_ok()
            && let Some(topic) = self.topic.take()
        {
            topic.keep();
        }
        self.stored.send_replace(Some(outcome.is_ok()));
        let _ = self.acknowledge.send(outcome);
    }
}
