//! Compresses app files that were not compressed at publication.

use std::time::Duration;

use async_trait::async_trait;

use super::{Job, JobError};
use crate::encodings::Encoder;
use crate::runtime::ActorKind;

#[async_trait]
impl Job for Encoder {
    const KIND: ActorKind = ActorKind::Encodings;
    const PAUSE: Duration = Duration::from_secs(20);

    async fn round(&self) -> Result<(), JobError> {
        if let Err(error) = Self::round(self).await {
            tracing::warn!(%error, "failed to poll for files to compress");
        }
        Ok(())
    }
}
