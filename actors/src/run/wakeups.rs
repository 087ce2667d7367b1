//! Wakes waiting runs in this process, and the task that claims runs from the queue.

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
    inner: Arc<WakeupsInner>,
}

/// Maximum parked runs not yet announced; a receiver that lags further polls the database.
const PARKED: usize = 256;

/// Maximum due times tracked to the millisecond; later ones are found up to a second late.
const ALARMS: usize = 1_024;

struct WakeupsInner {
    queue: Notify,
    /// Due times of runs that were parked here.
    alarms: Mutex<BTreeSet<DateTime<Utc>>>,
    /// Tasks waiting for answers, by run.
    questions: DashMap<Uuid, Arc<Notify>>,
    /// Announces each run that is parked here.
    parked: broadcast::Sender<Uuid>,
}

impl Default for WakeupsInner {
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
    /// A queued run may be due, or a run was requested to stop.
    pub(crate) fn queue(&self) {
        self.inner.queue.notify_one();
    }

    /// A run was parked until `due`.
    pub(crate) fn parked(&self, run: Uuid, due: Option<DateTime<Utc>>) {
        if let Some(due) = due {
            let mut alarms = self.inner.alarms.lock();
            alarms.insert(due);
            if alarms.len() > ALARMS {
                // Polling finds it soon enough.
                alarms.pop_last();
            }
            drop(alarms);
            self.queue();
        }
        // Having no receivers is fine.
        let _ = self.inner.parked.send(run);
    }

    /// Receives each run that is parked here.
    pub(crate) fn parkings(&self) -> broadcast::Receiver<Uuid> {
        self.inner.parked.subscribe()
    }

    /// A question of a run in this process was answered.
    pub(crate) fn answered(&self, run: Uuid) {
        if let Some(questions) = self.inner.questions.get(&run) {
            questions.notify_waiters();
        }
        // It may just have been parked.
        self.queue();
    }

    /// Waits until a queued run may be due, at most `limit`; returns whether a local wakeup or alarm caused the end.
    pub(crate) async fn wait(&self, clock: &dyn Clock, limit: Duration) -> bool {
        let now = clock.now();
        let next = {
            let mut alarms = self.inner.alarms.lock();
            // Past alarms were handled by the poll just now.
            *alarms = alarms.split_off(&now);
            alarms.first().map(|next| (*next - now).to_std().unwrap_or_default())
        };
        let wait = next.map_or(limit, |next| next.min(limit));
        tokio::select! {
            () = self.inner.queue.notified() => true,
            () = clock.sleep(wait) => next.is_some_and(|next| next <= limit),
        }
    }

    /// Registers a task that waits for answers to this run's questions.
    pub(super) fn listen(&self, run: Uuid) -> Listening<'_> {
        let woken = Arc::clone(&*self.inner.questions.entry(run).or_default());
        Listening { wakeups: self, run, woken }
    }
}

/// Registered while a task waits for an answer.
pub(super) struct Listening<'a> {
    wakeups: &'a Wakeups,
    run: Uuid,
    pub(super) woken: Arc<Notify>,
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        // At most two references: the map's and this one.
        self.wakeups.inner.questions.remove_if(&self.run, |_, woken| Arc::strong_count(woken) <= 2);
    }
}
