//! Finds orphaned runs: every unfinished run must have a writer with a lease, or be queued.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::first_id_at;
use parking_lot::Mutex;
use store::{ClaimFailed, Lease, OwnershipScan, StoreError};
use uuid::Uuid;

use crate::run::recover::Recovery;

/// Maximum rows per poll.
const SCAN_PAGE_ROWS: i64 = 5_000;
/// Pause between two pages of a scan.
const SCAN_PAUSE: Duration = Duration::from_millis(50);
/// Maximum age of a run id when it is stored: a request with a key may be retried a day later.
const MAX_ID_AGE: TimeDelta = TimeDelta::days(2);

/// Adopts orphaned runs. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sweeper {
    recovery: Recovery,
    lease: Lease,
    /// Every run up to this id has ended.
    ended: Arc<Mutex<Uuid>>,
}

impl Sweeper {
    pub(crate) fn new(recovery: Recovery, lease: Lease) -> Self {
        Self { recovery, lease, ended: Arc::default() }
    }

    /// Scans all runs that may be unfinished; returns the number of orphaned ones.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let ports = &self.recovery.ports;
        let (mut ended, mut found) = (first_id_at(ports.clock.now() - MAX_ID_AGE), 0);
        let mut after = *self.ended.lock();
        loop {
            let looked = ports.store.scan_ownership(self.lease, after, SCAN_PAGE_ROWS).await?;
            if let Some(unfinished) = looked.first_unfinished {
                ended = ended.min(Uuid::from_u128(unfinished.as_u128().saturating_sub(1)));
            }
            found += self.take_up(&looked).await?;
            let Some(last) = looked.last else { break };
            after = last;
            ports.clock.sleep(SCAN_PAUSE).await;
        }
        *self.ended.lock() = ended;
        Ok(found)
    }

    async fn take_up(&self, looked: &OwnershipScan) -> Result<usize, StoreError> {
        let in_flight = &self.recovery.ports.in_flight;
        let adopted = {
            let _naming = in_flight.naming().await;
            // A run of this instance that is unknown here was claimed by a commit without a confirmation.
            let unknown = looked.owned.iter().filter(|seen| !in_flight.knows(seen.run));
            let runs: Vec<_> = looked.orphaned.iter().chain(unknown).copied().collect();
            let adopted = self.recovery.ports.store.adopt_orphaned(self.lease, &runs).await;
            let (Ok(runs) | Err(ClaimFailed { uncertain: runs, .. })) = &adopted;
            in_flight.given(runs);
            adopted.map_err(|not| not.error)?
        };
        if !adopted.is_empty() {
            let found = adopted.len();
            tracing::error!(found, "adopted orphaned runs");
            self.recovery.adopt(&adopted).await;
        }
        Ok(adopted.len())
    }
}
