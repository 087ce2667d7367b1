//! Limits concurrent bundle checks.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Maximum per process.
const PER_PROCESS: usize = 2;
/// Maximum per workspace.
const PER_WORKSPACE: usize = 1;
/// Maximum time that an upload waits for a permit.
const WAIT: Duration = Duration::from_secs(10);

/// The permits for uploads.
pub(super) struct BundlePermits {
    all: Arc<Semaphore>,
    workspaces: Mutex<HashMap<Uuid, Weak<Semaphore>>>,
}

/// An upload's permit, returned on drop.
#[derive(Debug)]
pub(super) struct BundlePermit {
    _of_workspace: OwnedSemaphorePermit,
    _of_process: OwnedSemaphorePermit,
}

impl BundlePermits {
    pub(super) fn new() -> Self {
        Self { all: Arc::new(Semaphore::new(PER_PROCESS)), workspaces: Mutex::default() }
    }

    /// Waits for a permit; `None` after the timeout.
    pub(super) async fn acquire(&self, workspace: Uuid, clock: &dyn Clock) -> Option<BundlePermit> {
        let of_workspace = self.of_workspace(workspace);
        let acquire = async {
            // In this order, so that an upload that waits for its workspace does not block other workspaces.
            let of_workspace = of_workspace.acquire_owned().await?;
            let of_process = Arc::clone(&self.all).acquire_owned().await?;
            Ok::<_, AcquireError>(BundlePermit { _of_workspace: of_workspace, _of_process: of_process })
        };
        kernel::timeout(clock, WAIT, acquire).await?.ok()
    }

    fn of_workspace(&self, workspace: Uuid) -> Arc<Semaphore> {
        let mut workspaces = self.workspaces.lock();
        workspaces.retain(|_, permits| permits.strong_count() > 0);
        let known = workspaces.get(&workspace).and_then(Weak::upgrade);
        known.unwrap_or_else(|| {
            let permits = Arc::new(Semaphore::new(PER_WORKSPACE));
            workspaces.insert(workspace, Arc::downgrade(&permits));
            permits
        })
    }
}

#[cfg(test)]
mod tests {
    use kernel::ManualClock;

    use super::*;

    #[tokio::test]
    async fn a_workspace_has_one_permit_and_the_process_two() {
        let clock = ManualClock::new(chrono::DateTime::UNIX_EPOCH);
        let permits = BundlePermits::new();
        let (one, two, three) = (Uuid::from_u128(1), Uuid::from_u128(2), Uuid::from_u128(3));
        let first = permits.acquire(one, &clock).await.unwrap();
        let late = async |workspace| {
            let (permit, ()) = tokio::join!(permits.acquire(workspace, &clock), async {
                tokio::task::yield_now().await;
                clock.advance(WAIT);
            });
            permit.is_none()
        };
        assert!(late(one).await, "of the workspace");
        let second = permits.acquire(two, &clock).await.unwrap();
        assert!(late(three).await, "of the process");
        drop(first);
        let third = permits.acquire(three, &clock).await.unwrap();
        drop((second, third));
        assert!(permits.acquire(one, &clock).await.is_some());
        assert_eq!(permits.workspaces.lock().len(), 1, "entries without a permit are dropped");
    }
}
