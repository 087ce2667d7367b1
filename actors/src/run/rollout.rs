//! Wakes gate and canary checks in this process.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use parking_lot::Mutex;
use tokio::sync::Notify;
use uuid::Uuid;

/// Wakes gate and canary checks. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct RolloutSignals {
    inner: Arc<SignalsInner>,
}

#[derive(Default)]
struct SignalsInner {
    gates: Notify,
    woken: Notify,
    /// Workflows whose canaries have a new turn or new feedback.
    canaries: Mutex<HashSet<Uuid>>,
}

impl RolloutSignals {
    /// A gate evaluation was stored or has ended.
    pub(crate) fn gates(&self) {
        self.inner.gates.notify_one();
    }

    /// A turn has ended, or new feedback arrived.
    pub(crate) fn canary(&self, workflow: Uuid) {
        if self.inner.canaries.lock().insert(workflow) {
            self.inner.woken.notify_one();
        }
    }

    /// Waits for a gate signal, at most `limit`.
    pub(crate) async fn wait_gates(&self, clock: &dyn Clock, limit: Duration) {
        tokio::select! {
            () = self.inner.gates.notified() => {}
            () = clock.sleep(limit) => {}
        }
    }

    /// Waits for canary signals, at most `limit`; returns the workflows to check.
    pub(crate) async fn wait_canaries(&self, clock: &dyn Clock, limit: Duration) -> Vec<Uuid> {
        if self.inner.canaries.lock().is_empty() {
            tokio::select! {
                () = self.inner.woken.notified() => {}
                () = clock.sleep(limit) => {}
            }
        }
        std::mem::take(&mut *self.inner.canaries.lock()).into_iter().collect()
    }
}
