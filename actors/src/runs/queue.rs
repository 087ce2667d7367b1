//! Takes runs out of the queue whose time or turn has come, and hears what other instances say of runs here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use store::{Lease, NotTaken, StoreError};
use uuid::Uuid;

use crate::recovery::Recovery;
use crate::run::RunPorts;

/// How often it is looked what is due, unless something here says that it is.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is heard what others say, where there are others.
const HEAR: Duration = Duration::from_millis(200);

/// How long the commit of an answer, or of a run that goes into the queue, may take.
const ANSWERS: TimeDelta = TimeDelta::minutes(5);

/// The way out of the queue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunQueue {
    recovery: Recovery,
    lease: Lease,
    /// When it was looked what is due, in monotonic time.
    looked: Arc<Mutex<Option<Duration>>>,
    /// When it was looked for answers.
    answered: Arc<Mutex<Option<DateTime<Utc>>>>,
}

impl RunQueue {
    pub(crate) fn new(recovery: Recovery, lease: Lease) -> Self {
        Self { recovery, lease, looked: Arc::default(), answered: Arc::default() }
    }

    fn ports(&self) -> &RunPorts {
        self.recovery.runs.ports()
    }

    /// One round: hears, takes what is due, and waits until something may be due.
    pub(crate) async fn round(&self) {
        if let Err(error) = self.look().await {
            tracing::warn!(%error, "it was not looked which runs are due");
            self.ports().clock.sleep(LOOK).await;
        }
        let ports = self.ports();
        let others = ports.others.load(Ordering::Relaxed);
        let woken = ports.wakes.wait(&*ports.clock, if others { HEAR } else { LOOK }).await;
        if woken {
            *self.looked.lock() = None;
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let RunPorts { store, wakes, clock, writer, others, .. } = self.ports();
        if others.load(Ordering::Relaxed) {
            for run in store.take_signals(*writer).await? {
                wakes.answered(run);
            }
        }
        let stops = store.asked_stops(*writer).await?;
        if stops.iter().any(|stop| stop.over) {
            store.forget_stops().await?;
        }
        for stop in stops.into_iter().filter(|stop| !stop.over) {
            if stop.queued {
                self.take(store.take_queued(self.lease, stop.run)).await?;
            } else {
                self.recovery.stop(stop);
            }
        }
        let now = clock.monotonic();
        if self.looked.lock().is_some_and(|looked| now.saturating_sub(looked) < LOOK) {
            return Ok(());
        }
        *self.looked.lock() = Some(now);
        self.wake_answered().await?;
        while self.take(store.take_due(self.lease)).await? > 0 {}
        for workflow in store.workflows_with_turns().await? {
            while self.take(self.turns(workflow)).await? > 0 {}
        }
        Ok(())
    }

    /// Wakes runs that were answered while they went into the queue: in the last while, or while nobody looked.
    async fn wake_answered(&self) -> Result<(), StoreError> {
        let RunPorts { store, clock, .. } = self.ports();
        let (now, last) = (clock.now(), *self.answered.lock());
        store.wake_answered(last.map_or(DateTime::UNIX_EPOCH, |last| last - ANSWERS)).await?;
        *self.answered.lock() = Some(now);
        Ok(())
    }

    /// Runs of a workflow whose turn has come; where another instance takes them just now, it is looked again soon.
    async fn turns(&self, workflow: Uuid) -> Result<Vec<Uuid>, NotTaken> {
        let turns = self.ports().store.take_turns(self.lease, workflow).await?;
        Ok(turns.unwrap_or_else(|| {
            *self.looked.lock() = None;
            Vec::new()
        }))
    }

    /// Makes runs that are taken out of the queue actors of this process; says how many.
    async fn take(
        &self,
        taking: impl Future<Output = Result<Vec<Uuid>, NotTaken>>,
    ) -> Result<usize, StoreError> {
        let ports = self.ports();
        let taken = {
            // The lease reaches back to them before it is renewed with what is known here.
            let _naming = ports.in_flight.naming().await;
            let taken = taking.await;
            // Whether it was taken is found out later, where the database did not say.
            let (Ok(runs) | Err(NotTaken { perhaps: runs, .. })) = &taken;
            ports.in_flight.given(runs);
            taken.map_err(|not| not.error)?
        };
        self.recovery.adopt(&taken).await;
        Ok(taken.len())
    }
}
