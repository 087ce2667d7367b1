//! Measures workspace storage.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use kernel::Clock;
use store::Store;

use super::{Job, JobError};
use crate::run::quota::Quota;
use crate::runtime::ActorKind;

pub(crate) struct Usage {
    pub(crate) quota: Quota,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
}

#[async_trait]
impl Job for Usage {
    const KIND: ActorKind = ActorKind::Usage;
    const PAUSE: Duration = Duration::from_secs(60);

    async fn round(&self) -> Result<(), JobError> {
        if let Err(error) = self.quota.measure(&self.store, self.clock.now()).await {
            tracing::warn!(%error, "failed to measure the storage of workspaces");
        }
        Ok(())
    }
}
