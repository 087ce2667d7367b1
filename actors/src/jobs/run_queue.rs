//! Claims due runs from the queue.

use std::time::Duration;

use async_trait::async_trait;

use super::{Job, JobError};
use crate::run::queue::RunQueue;
use crate::runtime::ActorKind;

#[async_trait]
impl Job for RunQueue {
    const KIND: ActorKind = ActorKind::Queue;
    /// A round itself waits until a run may be due.
    const PAUSE: Duration = Duration::ZERO;

    async fn round(&self) -> Result<(), JobError> {
        self.claim_and_wait().await;
        Ok(())
    }
}
