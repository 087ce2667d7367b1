//! Looks for runs that ought not to be: every unfinished run has a writer with a lease, or stands in the queue.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::first_id_at;
use parking_lot::Mutex;
use store::{Lease, LookedOver, NotTaken, StoreError};
use uuid::Uuid;

use crate::recovery::Recovery;

/// Runs that one look reads.
const PAGE: i64 = 5_000;
/// Rest between two looks.
const REST: Duration = Duration::from_millis(50);
/// How old a run's id may be when it is stored: a request with a key may be sent again a day later.
const LATE: TimeDelta = TimeDelta::days(2);

/// Takes up what nobody looks after. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sweeper {
    recovery: Recovery,
    lease: Lease,
    /// Every run up to here has ended.
    ended: Arc<Mutex<Uuid>>,
}

impl Sweeper {
    pub(crate) fn new(recovery: Recovery, lease: Lease) -> Self {
        Self { recovery, lease, ended: Arc::default() }
    }

    /// Looks at every run that may not have ended; says how many nobody looked after.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let ports = self.recovery.runs.ports();
        let (mut ended, mut found) = (first_id_at(ports.clock.now() - LATE), 0);
        let mut after = *self.ended.lock();
        loop {
            let looked = ports.store.looked_over(self.lease, after, PAGE).await?;
            if let Some(unfinished) = looked.first_unfinished {
                ended = ended.min(Uuid::from_u128(unfinished.as_u128().saturating_sub(1)));
            }
            found += self.take_up(&looked).await?;
            let Some(last) = looked.last else { break };
            after = last;
            ports.clock.sleep(REST).await;
        }
        *self.ended.lock() = ended;
        Ok(found)
    }

    async fn take_up(&self, looked: &LookedOver) -> Result<usize, StoreError> {
        let in_flight = &self.recovery.runs.ports().in_flight;
        let adopted = {
            let _naming = in_flight.naming().await;
            // A run of this instance that does not count here was taken by a commit of which nothing was heard.
            let unknown = looked.own.iter().filter(|seen| !in_flight.knows(seen.run));
            let runs: Vec<_> = looked.forsaken.iter().chain(unknown).copied().collect();
            let adopted = self.recovery.runs.ports().store.adopt_forsaken(self.lease, &runs).await;
            let (Ok(runs) | Err(NotTaken { perhaps: runs, .. })) = &adopted;
            in_flight.given(runs);
            adopted.map_err(|not| not.error)?
        };
        if !adopted.is_empty() {
            let found = adopted.len();
            tracing::error!(found, "unfinished runs that nobody looked after; they are taken up");
            self.recovery.adopt(&adopted).await;
        }
        Ok(adopted.len())
    }
}
