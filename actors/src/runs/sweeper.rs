//! Looks for runs that ought not to be: every unfinished run has a writer with a lease, or stands in the queue.

use std::time::Duration;

use store::{Lease, StoreError};
use uuid::Uuid;

use crate::recovery::Recovery;

/// Runs that one look reads.
const PAGE: i64 = 5_000;
/// Rest between two looks.
const REST: Duration = Duration::from_millis(50);

/// Takes up what nobody looks after. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Sweeper {
    pub(crate) recovery: Recovery,
    pub(crate) lease: Lease,
}

impl Sweeper {
    /// Looks at every run there is; says how many nobody looked after.
    pub(crate) async fn sweep(&self) -> Result<usize, StoreError> {
        let ports = self.recovery.runs.ports();
        let (mut after, mut found) = (Uuid::nil(), 0);
        loop {
            let (forsaken, last) = ports.store.forsaken_runs(after, PAGE).await?;
            if !forsaken.is_empty() {
                let adopted = {
                    let _naming = ports.in_flight.naming().await;
                    let adopted = ports.store.adopt_forsaken(self.lease, &forsaken).await?;
                    ports.in_flight.abandon(&adopted);
                    adopted
                };
                tracing::error!(
                    found = adopted.len(),
                    "unfinished runs that nobody looked after; they are taken up"
                );
                found += adopted.len();
                self.recovery.adopt(&adopted).await;
            }
            let Some(last) = last else { return Ok(found) };
            after = last;
            ports.clock.sleep(REST).await;
        }
    }
}
