//! Creates partitions ahead, deletes expired data, finds orphaned runs.

use std::time::Duration;

use async_trait::async_trait;

use super::retention::Retention;
use super::{Job, JobError};
use crate::run::sweeper::Sweeper;
use crate::runtime::ActorKind;

pub(crate) struct Maintenance {
    pub(crate) retention: Retention,
    pub(crate) sweeper: Sweeper,
}

#[async_trait]
impl Job for Maintenance {
    const KIND: ActorKind = ActorKind::Maintenance;
    const PAUSE: Duration = Duration::from_secs(3_600);

    async fn round(&self) -> Result<(), JobError> {
        self.retention.round().await;
        if let Err(error) = self.sweeper.sweep().await {
            tracing::warn!(%error, "failed to scan for orphaned runs");
        }
        Ok(())
    }
}
