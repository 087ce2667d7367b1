//! Starts an instance while others are live.

use std::collections::BTreeMap;
use std::time::Duration;

use kernel::Clock;
use store::{Lease, Store, StoreError};
use uuid::Uuid;

/// Maximum time a starting instance waits for the others: two renewals and a second.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Interval of the polls during that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Waits until every other live instance knows this one. Until then, another instance may start a turn without asking
/// whether this one executes a turn in the same thread.
pub(crate) async fn join(store: &Store, lease: Lease, clock: &dyn Clock) -> Result<(), StoreError> {
    let before = store.lease_rounds(lease).await?;
    let end = clock.monotonic() + MAX_WAIT;
    // The first renewal may have been under way; the second one began after this lease was committed.
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
