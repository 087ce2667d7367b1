//! Polls streams that other instances write.

use std::time::Duration;

use async_trait::async_trait;

use super::{Job, JobError};
use crate::runtime::ActorKind;
use crate::streams::ForeignStreams;

#[async_trait]
impl Job for ForeignStreams {
    const KIND: ActorKind = ActorKind::Streams;
    /// A round itself waits until the next poll.
    const PAUSE: Duration = Duration::ZERO;

    async fn round(&self) -> Result<(), JobError> {
        self.poll_and_wait().await;
        Ok(())
    }
}
