//! What wakes runs that wait in this process, and who takes them out of the queue.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use dashmap::DashMap;
use kernel::Clock;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use uuid::Uuid;

/// Wakes parked runs and waiting tasks of this process. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Wakeups {
    inner: Arc<Inner>,
}

/// Runs that were enqueued and not yet announced; a receiver that lags further polls the database.
const PARKED: usize = 256;

/// Most times that are known to the millisecond; what is due later is found up to a second late.
const ALARMS: usize = 1_024;

struct Inner {
    queue: Notify,
    /// When runs that went into the queue here are due.
    alarms: Mutex<BTreeSet<DateTime<Utc>>>,
    /// Who waits for answers to a run's questions.
    questions: DashMap<Uuid, Arc<Notify>>,
    /// Tells of each run that goes into the queue here.
    parked: broadcast::Sender<Uuid>,
}

impl Default for Inner {
    fn default() -> Self {
        Self {
            queue: Notify::new(),
            alarms: Mutex::default(),
            questions: DashMap::default(),
            parked: broadcast::Sender::new(PARKED),
        }
    }
}

impl Wakeups {
    /// Something in the queue may be due, or some run is to end.
    pub(crate) fn queue(&self) {
        self.inner.queue.notify_one();
    }

    /// A run went into the queue, to be due then.
    pub(crate) fn parked(&self, run: Uuid, due: Option<DateTime<Utc>>) {
        if let Some(due) = due {
            let mut alarms = self.inner.alarms.lock();
            alarms.insert(due);
            if alarms.len() > ALARMS {
                // Polls find it soon enough without.
                alarms.pop_last();
            }
            drop(alarms);
            self.queue();
        }
        // No listener is no error.
        let _ = self.inner.parked.send(run);
    }

    /// Tells of each run that goes into the queue here.
    pub(crate) fn parkings(&self) -> broadcast::Receiver<Uuid> {
        self.inner.parked.subscribe()
    }

    /// A question of a run that is here was answered.
    pub(crate) fn answered(&self, run: Uuid) {
        if let Some(questions) = self.inner.questions.get(&run) {
            questions.notify_waiters();
        }
        // It may have gone into the queue just now.
        self.queue();
    }

    /// Ends when something in the queue may be due, after `limit` at the latest; says whether something here says so.
    pub(crate) async fn wait(&self, clock: &dyn Clock, limit: Duration) -> bool {
        let now = clock.now();
        let next = {
            let mut alarms = self.inner.alarms.lock();
            // What is past was looked for just now.
            *alarms = alarms.split_off(&now);
            alarms.first().map(|next| (*next - now).to_std().unwrap_or_default())
        };
        let wait = next.map_or(limit, |next| next.min(limit));
        tokio::select! {
            () = self.inner.queue.notified() => true,
            () = clock.sleep(wait) => next.is_some_and(|next| next <= limit),
        }
    }

    /// Who waits for answers to this run's questions.
    pub(super) fn listen(&self, run: Uuid) -> Listening<'_> {
        let woken = Arc::clone(&*self.inner.questions.entry(run).or_default());
        Listening { wakeups: self, run, woken }
    }
}

/// Held while a task waits for an answer.
pub(super) struct Listening<'a> {
    wakeups: &'a Wakeups,
    run: Uuid,
    pub(super) woken: Arc<Notify>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        // The map and this one hold it.
        self.wakeups.inner.questions.remove_if(&self.run, |_, woken| Arc::strong_count(woken) <= 2);
    }
}
