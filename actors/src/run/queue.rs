//! Claims queued runs that are due or have the turn, and polls other instances' signals.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use store::{ClaimFailed, Lease, StoreError};
use uuid::Uuid;

use crate::run::recover::Recovery;
use crate::run::{RunPorts, SharedPorts};

/// Interval of the polls for due runs without a notification.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Interval of the polls for other instances' signals, if there are other instances.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum time to commit an answer or a parked run.
const ANSWERS: TimeDelta = TimeDelta::minutes(5);

/// Takes runs out of the queue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunQueue {
    recovery: Recovery,
    lease: Lease,
    /// When the queue was last polled for due runs, in monotonic time.
    looked: Arc<Mutex<Option<Duration>>>,
    /// When the queue was last polled for answers.
    answered: Arc<Mutex<Option<DateTime<Utc>>>>,
}

impl RunQueue {
    pub(crate) fn new(recovery: Recovery, lease: Lease) -> Self {
        Self { recovery, lease, looked: Arc::default(), answered: Arc::default() }
    }

    fn ports(&self) -> &RunPorts {
        &self.recovery.ports
    }

    /// Reads signals, claims due runs, and waits until a run may be due.
    pub(crate) async fn claim_and_wait(&self) {
        if let Err(error) = self.look().await {
            tracing::warn!(%error, "failed to poll for due runs");
            self.ports().clock.sleep(POLL_INTERVAL).await;
        }
        let ports = self.ports();
        let others = ports.others.load(Ordering::Relaxed);
        let woken = ports
            .wakeups
            .wait(&*ports.clock, if others { SIGNAL_POLL_INTERVAL } else { POLL_INTERVAL })
            .await;
        if woken {
            *self.looked.lock() = None;
        }
    }

    async fn look(&self) -> Result<(), StoreError> {
        let SharedPorts { store, wakeups, clock, writer, others, .. } = &**self.ports();
        if others.load(Ordering::Relaxed) {
            for run in store.take_signals(*writer).await? {
                wakeups.answered(run);
            }
        }
        let stops = store.stop_requests(*writer).await?;
        if stops.iter().any(|stop| stop.over) {
            store.forget_stops().await?;
        }
        // Runs of kinds unknown to this build are left to a newer one.
        for stop in stops
            .into_iter()
            .filter(|stop| !stop.over && self.recovery.kinds.for_trigger(&stop.trigger).is_some())
        {
            if stop.queued {
                self.take(store.take_queued(self.lease, stop.run)).await?;
            } else {
                self.recovery.stop(&stop);
            }
        }
        let now = clock.monotonic();
        if self.looked.lock().is_some_and(|looked| now.saturating_sub(looked) < POLL_INTERVAL) {
            return Ok(());
        }
        *self.looked.lock() = Some(now);
        self.wake_answered().await?;
        for run in store.pauses_of_writer(*writer).await? {
            self.recovery.kinds.pause(run);
        }
        while self.take(store.take_due(self.lease)).await? > 0 {}
        for workflow in store.workflows_with_turns().await? {
            while self.take(self.turns(workflow)).await? > 0 {}
        }
        Ok(())
    }

    /// Wakes queued runs answered since the last poll, allowing for [`ANSWERS`].
    async fn wake_answered(&self) -> Result<(), StoreError> {
        let SharedPorts { store, clock, .. } = &**self.ports();
        let (now, last) = (clock.now(), *self.answered.lock());
        store.wake_answered(last.map_or(DateTime::UNIX_EPOCH, |last| last - ANSWERS)).await?;
        *self.answered.lock() = Some(now);
        Ok(())
    }

    /// Claims a workflow's next runs in turn; if another instance is claiming them, the next poll comes soon.
    async fn turns(&self, workflow: Uuid) -> Result<Vec<Uuid>, ClaimFailed> {
        let turns = self.ports().store.take_turns(self.lease, workflow).await?;
        Ok(turns.unwrap_or_else(|| {
            *self.looked.lock() = None;
            Vec::new()
        }))
    }

    /// Claims runs from the queue and hands them to actors in this process; returns their number.
    async fn take(
        &self,
        taking: impl Future<Output = Result<Vec<Uuid>, ClaimFailed>>,
    ) -> Result<usize, StoreError> {
        let ports = self.ports();
        let taken = {
            // The lease must reach back to these runs before its next renewal with the known runs.
            let _naming = ports.in_flight.naming().await;
            let taken = taking.await;
            // If the database did not confirm the claim, ownership is settled later.
            let (Ok(runs) | Err(ClaimFailed { uncertain: runs, .. })) = &taken;
            ports.in_flight.given(runs);
            taken.map_err(|not| not.error)?
        };
        self.recovery.adopt(&taken).await;
        Ok(taken.len())
    }
}
