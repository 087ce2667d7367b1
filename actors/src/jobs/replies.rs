//! Erases model replies after their training has ended, in workspaces that do not keep them.

use std::time::Duration;

use async_trait::async_trait;
use store::StoreError;

use super::{Job, JobError};
use crate::run::{RunPorts, SharedPorts};
use crate::runtime::ActorKind;

/// Poll interval, because another process may have died after the end of a training, and a setting may have changed.
const POLL_INTERVAL: Duration = Duration::from_secs(10);
/// Pause between two parts.
const PART_PAUSE: Duration = Duration::from_millis(50);

/// The rounds over ended trainings.
pub(crate) struct ReplyRounds {
    ports: RunPorts,
}

impl ReplyRounds {
    pub(crate) fn new(ports: RunPorts) -> Self {
        Self { ports }
    }

    async fn erase(&self) -> Result<(), StoreError> {
        while self.ports.store.erase_replies_of_trainings().await? {
            self.ports.clock.sleep(PART_PAUSE).await;
        }
        Ok(())
    }
}

#[async_trait]
impl Job for ReplyRounds {
    const KIND: ActorKind = ActorKind::Replies;
    const PAUSE: Duration = Duration::from_millis(100);

    async fn round(&self) -> Result<(), JobError> {
        let SharedPorts { ended_trainings, clock, .. } = &*self.ports;
        if let Err(error) = self.erase().await {
            tracing::warn!(%error, "failed to erase replies of trainings; retrying");
        }
        tokio::select! {
            () = ended_trainings.notified() => {}
            () = clock.sleep(POLL_INTERVAL) => {}
        }
        Ok(())
    }
}
