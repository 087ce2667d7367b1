//! Shares of the connections that runs read with: what many steps of one workspace look up at once keeps the others waiting
//! for a few reads only.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

/// Reads of one workspace's runs at the same time.
const AT_ONCE: usize = 3;

/// The shares of all workspaces. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Reads {
    shares: Arc<Mutex<HashMap<Uuid, Weak<Semaphore>>>>,
}

impl Reads {
    /// The share of a workspace; forgotten when its last holder is gone.
    pub(crate) fn of(&self, workspace: Uuid) -> ReadsOf {
        let mut shares = self.shares.lock();
        if let Some(share) = shares.get(&workspace).and_then(Weak::upgrade) {
            return ReadsOf(share);
        }
        shares.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(AT_ONCE));
        shares.insert(workspace, Arc::downgrade(&share));
        ReadsOf(share)
    }
}

/// The share of one workspace.
pub(crate) struct ReadsOf(Arc<Semaphore>);

impl ReadsOf {
    /// Waits for a permit. A holder of one must not ask for another.
    pub(crate) async fn place(&self) -> Option<SemaphorePermit<'_>> {
        self.0.acquire().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn a_workspace_has_three_places_and_others_have_theirs() {
        let (reads, busy, other) = (Reads::default(), Uuid::from_u128(1), Uuid::from_u128(2));
        // Each run has its own handle of the share.
        let runs: Vec<ReadsOf> = (0..4).map(|_| reads.of(busy)).collect();
        let mut held: Vec<_> = runs.iter().map(|run| run.place().now_or_never().flatten()).collect();
        assert_eq!(held.iter().flatten().count(), AT_ONCE);
        assert!(reads.of(other).place().now_or_never().flatten().is_some());
        held.remove(0);
        assert!(runs[3].place().now_or_never().flatten().is_some());
    }

    #[test]
    fn shares_without_a_holder_are_forgotten() {
        let reads = Reads::default();
        for id in 0..100 {
            reads.of(Uuid::from_u128(id));
        }
        assert_eq!(reads.shares.lock().len(), 1);
    }
}
