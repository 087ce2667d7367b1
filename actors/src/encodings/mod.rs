//! Compressed forms of files of apps: prepared when a deployment is published, and what time does not suffice for, afterwards.

mod compress;

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use store::{Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use compress::compress;

/// How long a publish waits for encodings.
const PUBLISH: Duration = Duration::from_secs(5);
/// Deployments of a round.
const DEPLOYMENTS: i64 = 100;

/// Prepares encodings, one file at a time in a process. Cheap to clone.
#[derive(Clone)]
pub struct Encodings {
    store: Store,
    clock: Arc<dyn Clock>,
    turn: Arc<Semaphore>,
}

/// A file is not compressed.
#[derive(Debug, thiserror::Error)]
enum EncodingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a file is not stored")]
    Missing,
    #[error("cannot compress: {0}")]
    Compress(String),
}

impl Encodings {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, turn: Arc::new(Semaphore::new(1)) }
    }

    /// Compresses files of a deployment that is about to be published, smallest first, for at most five seconds. The file that is
    /// compressed then is completed; the others are sent as they are until the periodic job has compressed them.
    pub async fn prepare(&self, deployment: Uuid) {
        let until = self.clock.monotonic().saturating_add(PUBLISH);
        let this = self.clone();
        let work = tokio::spawn(async move { this.encode(deployment, Some(until)).await });
        if let Some(Ok(Err(error))) = kernel::timeout(&*self.clock, PUBLISH, work).await {
            tracing::warn!(%error, %deployment, "failed to prepare encodings; retrying later");
        }
    }

    /// Compresses what is not compressed yet of active releases.
    pub(crate) async fn round(&self) -> Result<(), StoreError> {
        for deployment in self.store.deployments_to_encode(DEPLOYMENTS).await? {
            // A failure does not skip the other deployments.
            if let Err(error) = self.encode(deployment, None).await {
                tracing::warn!(%error, %deployment, "failed to prepare encodings; retrying later");
            }
        }
        Ok(())
    }

    async fn encode(&self, deployment: Uuid, until: Option<Duration>) -> Result<(), StoreError> {
        for file in self.store.files_to_encode(deployment).await? {
            let Ok(_turn) = self.turn.acquire().await else { return Ok(()) };
            if until.is_some_and(|until| self.clock.monotonic() >= until) {
                return Ok(());
            }
            match self.encode_file(deployment, &file.digest).await {
                Ok(()) => {}
                Err(EncodingError::Store(error)) => return Err(error),
                // A failure does not skip the other files.
                Err(error) => {
                    tracing::warn!(%error, %deployment, "failed to compress a file; retrying later")
                }
            }
        }
        Ok(())
    }

    async fn encode_file(&self, deployment: Uuid, digest: &[u8]) -> Result<(), EncodingError> {
        let address = digest.try_into().map_err(|_| EncodingError::Missing)?;
        let bytes = self.store.blob(&address).await?.ok_or(EncodingError::Missing)?;
        let failed = |error: &dyn std::fmt::Display| EncodingError::Compress(error.to_string());
        let encodings = spawn_blocking(move || compress(&bytes)).await.map_err(|error| failed(&error))?;
        let encodings = encodings.map_err(|error| failed(&error))?;
        Ok(self.store.store_encodings(deployment, digest, &encodings).await?)
    }
}
