//! The start of an instance beside others.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::Clock;
use store::{Lease, Store, StoreError};
use uuid::Uuid;

/// Maximum wait of a starting instance for the others: two renewals and a second.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Pause between two polls of it.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until every other live instance knows of this one: until then it may start a turn without asking whether this one
/// executes another of the same thread.
pub(crate) async fn join(store: &Store, lease: Lease, clock: &dyn Clock) -> Result<(), StoreError> {
    let before = store.lease_rounds(lease).await?;
    let end = clock.monotonic() + MAX_WAIT;
    // A renewal may have been under way; the next one has begun after this lease was committed.
    let unaware = |now: &BTreeMap<Uuid, i64>| {
        before.iter().any(|(writer, round)| now.get(writer).is_some_and(|now| *now < round + 2))
    };
    while unaware(&store.lease_rounds(lease).await?) {
        if clock.monotonic() >= end {
            tracing::warn!("another instance does not renew its lease; starting without it");
            break;
        }
        clock.sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
