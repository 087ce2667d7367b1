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

/// Wakes. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Wakes {
    inner: Arc<Inner>,
}

/// Runs that went into the queue and that nobody has heard of yet; who is further behind looks for himself.
const PARKED: usize = 256;

struct Inner {
    queue: Notify,
    /// When runs that went into the queue here are due.
    alarms: Mutex<BTreeSet<DateTime<Utc>>>,
    /// Runs that are to be taken out of the queue whatever they wait for.
    wanted: Mutex<BTreeSet<Uuid>>,
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
            wanted: Mutex::default(),
            questions: DashMap::default(),
            parked: broadcast::Sender::new(PARKED),
        }
    }
}

impl Wakes {
    /// Something in the queue may be due.
    pub(crate) fn queue(&self) {
        self.inner.queue.notify_one();
    }

    /// A run went into the queue, to be due then.
    pub(crate) fn parked(&self, run: Uuid, due: Option<DateTime<Utc>>) {
        if let Some(due) = due {
            self.inner.alarms.lock().insert(due);
            self.queue();
        }
        // Nobody listening is no error.
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

    /// A run is to be taken out of the queue, whatever it waits for.
    pub(crate) fn again(&self, run: Uuid) {
        self.inner.wanted.lock().insert(run);
        self.queue();
    }

    /// The runs that are to be taken out of the queue.
    pub(crate) fn wanted(&self) -> BTreeSet<Uuid> {
        std::mem::take(&mut *self.inner.wanted.lock())
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
        Listening { wakes: self, run, woken }
    }
}

/// Held while somebody waits for an answer.
pub(super) struct Listening<'a> {
    wakes: &'a Wakes,
    run: Uuid,
    pub(super) woken: Arc<Notify>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        // The map and this one hold it.
        self.wakes.inner.questions.remove_if(&self.run, |_, woken| Arc::strong_count(woken) <= 2);
    }
}
