//! Starts the runs of due cron triggers.

use std::time::Duration;

use async_trait::async_trait;

use super::{Job, JobError};
use crate::runtime::ActorKind;
use crate::triggers::CronRounds;

#[async_trait]
impl Job for CronRounds {
    const KIND: ActorKind = ActorKind::Triggers;
    const PAUSE: Duration = Duration::from_secs(1);

    async fn round(&self) -> Result<(), JobError> {
        self.fire_due().await;
        Ok(())
    }
}
