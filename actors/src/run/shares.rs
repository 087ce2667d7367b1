//! Shares of the connection pool: one workspace's concurrent work delays the others by only a few queries.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Maximum concurrent reads by one workspace's runs.
pub(crate) const READS: usize = 3;
/// Maximum concurrent record changes per workspace. Changes to one collection are serialized, so more of them would
/// only hold connections and wait.
pub(crate) const RECORD_CHANGES: usize = 2;

/// Shares of all workspaces. Cheap to clone.
#[derive(Clone)]
pub struct WorkspaceShares {
    at_once: usize,
    shares: Arc<Mutex<HashMap<Uuid, Weak<Semaphore>>>>,
}

impl WorkspaceShares {
    /// Creates shares with this many permits each.
    pub(crate) fn new(at_once: usize) -> Self {
        Self { at_once, shares: Arc::default() }
    }

    /// A workspace's share, dropped with its last holder.
    #[must_use]
    pub fn for_workspace(&self, workspace: Uuid) -> WorkspaceShare {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(&workspace).and_then(Weak::upgrade) {
            return WorkspaceShare(share);
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.at_once));
        shares.insert(workspace, Arc::downgrade(&share));
        WorkspaceShare(share)
    }
}

/// One workspace's share.
pub struct WorkspaceShare(Arc<Semaphore>);

/// A permit from a share, returned when dropped.
#[derive(Debug)]
pub struct SharePermit {
    _permit: Option<OwnedSemaphorePermit>,
}

impl WorkspaceShare {
    /// Waits for a permit. A holder must not request another one.
    pub async fn permit(&self) -> SharePermit {
        // Never closed.
        SharePermit { _permit: Arc::clone(&self.0).acquire_owned().await.ok() }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn each_workspace_has_three_permits() {
        let (reads, busy, other) = (WorkspaceShares::new(READS), Uuid::from_u128(1), Uuid::from_u128(2));
        // Each run has a separate handle to the share.
        let runs: Vec<WorkspaceShare> = (0..4).map(|_| reads.for_workspace(busy)).collect();
        let mut held: Vec<_> = runs.iter().map(|run| run.permit().now_or_never()).collect();
        assert_eq!(held.iter().flatten().count(), READS);
        assert!(reads.for_workspace(other).permit().now_or_never().is_some());
        held.remove(0);
        assert!(runs[3].permit().now_or_never().is_some());
    }

    #[test]
    fn shares_without_a_holder_are_removed() {
        let reads = WorkspaceShares::new(READS);
        for id in 0..100 {
            let _ = reads.for_workspace(Uuid::from_u128(id));
        }
        assert_eq!(reads.shares.lock().len(), 1);
    }

    #[tokio::test]
    async fn a_permit_outlives_the_handle_of_its_share() {
        let (changes, workspace) = (WorkspaceShares::new(1), Uuid::from_u128(1));
        let held = changes.for_workspace(workspace).permit().await;
        assert!(changes.for_workspace(workspace).permit().now_or_never().is_none());
        drop(held);
        assert!(changes.for_workspace(workspace).permit().now_or_never().is_some());
    }
}
