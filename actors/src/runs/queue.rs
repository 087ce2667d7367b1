//! Takes runs out of the queue whose time or turn has come, and hears what other instances say of runs here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use parking_lot::Mutex;
use store::{Lease, StoreError};
use uuid::Uuid;

use crate::recovery::Recovery;
use crate::run::RunPorts;

/// How often it is looked what is due, unless something here says that it is.
const LOOK: Duration = Duration::from_secs(1);
/// How often it is heard what others say, where there are others.
const HEAR: Duration = Duration::from_millis(200);

/// The way out of the queue. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RunQueue {
    pub(crate) recovery: Recovery,
    pub(crate) lease: Lease,
    /// When it was looked what is due, in monotonic time.
    pub(crate) looked: Arc<Mutex<Option<Duration>>>,
}

impl RunQueue {
    pub(crate) fn new(recovery: Recovery, lease: Lease) -> Self {
        Self { recovery, lease, looked: Arc::default() }
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
                self.told_of(run).await?;
            }
        }
        for run in wakes.wanted() {
            let taking = async {
                let stood = store.take_queued(self.lease, run).await?;
                Ok(stood.then_some(run).into_iter().collect())
            };
            self.take(taking).await?;
        }
        let now = clock.monotonic();
        if self.looked.lock().is_some_and(|looked| now.saturating_sub(looked) < LOOK) {
            return Ok(());
        }
        *self.looked.lock() = Some(now);
        store.wake_answered().await?;
        while self.take(store.take_due(self.lease)).await? > 0 {}
        while self.take(store.take_turns(self.lease, None)).await? > 0 {}
        Ok(())
    }

    /// Another instance has stored something that concerns a run here.
    async fn told_of(&self, run: Uuid) -> Result<(), StoreError> {
        let ports = self.ports();
        if let Some(found) = ports.store.run(run).await?.filter(|run| run.cancel_requested) {
            self.recovery.stop(&found);
        }
        ports.wakes.answered(run);
        Ok(())
    }

    /// Makes runs that are taken out of the queue actors of this process; says how many.
    async fn take(
        &self,
        taking: impl Future<Output = Result<Vec<Uuid>, StoreError>>,
    ) -> Result<usize, StoreError> {
        let ports = self.ports();
        let taken = {
            // The lease reaches back to them before it is renewed with what is known here.
            let _naming = ports.in_flight.naming().await;
            let taken = taking.await?;
            ports.in_flight.abandon(&taken);
            taken
        };
        self.recovery.adopt(&taken).await;
        Ok(taken.len())
    }
}
