//! Continues visitor data erasures that their requests have not completed.

use std::time::Duration;

use async_trait::async_trait;
use store::StoreError;

use super::{Job, JobError};
use crate::kinds::turn::chat::Chat;
use crate::run::SharedPorts;
use crate::runtime::ActorKind;

/// Time limit per visitor and round, so that a turn that does not end does not delay other visitors.
const LIMIT: Duration = Duration::from_secs(10);

/// The erasure rounds.
pub(crate) struct ErasureRounds {
    chat: Chat,
}

impl ErasureRounds {
    pub(crate) fn new(chat: Chat) -> Self {
        Self { chat }
    }

    async fn continue_all(&self) -> Result<(), StoreError> {
        let SharedPorts { store, clock, .. } = &*self.chat.ports;
        for erasure in store.open_erasures().await? {
            let workflow = erasure.visitor.workflow;
            match kernel::timeout(&**clock, LIMIT, self.chat.erase(&erasure)).await {
                Some(Ok(())) => tracing::info!(%workflow, "erased a visitor's data"),
                Some(Err(error)) => tracing::warn!(%error, %workflow, "failed to erase a visitor's data"),
                None => {}
            }
        }
        store.forget_erased_visitors().await
    }
}

#[async_trait]
impl Job for ErasureRounds {
    const KIND: ActorKind = ActorKind::Erasures;
    const PAUSE: Duration = Duration::from_secs(2);

    async fn round(&self) -> Result<(), JobError> {
        if let Err(error) = self.continue_all().await {
            tracing::warn!(%error, "failed to continue erasures");
        }
        Ok(())
    }
}
