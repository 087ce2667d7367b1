//! Compressed app files: prepared when a deployment is published; a periodic job compresses the rest.

mod compress;

use std::sync::Arc;
use std::time::Duration;

use kernel::Clock;
use store::{Store, StoreError};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::run::WorkspaceShares;
use compress::compress;

/// Maximum time that a publish waits for encodings.
const PUBLISH: Duration = Duration::from_secs(5);
/// Maximum deployments per round.
const DEPLOYMENTS: i64 = 100;

/// Time per deployment in a round, before the next deployment follows.
const SHARE: Duration = Duration::from_secs(5);
/// Maximum publishes per workspace that compress concurrently.
const PUBLISHES: usize = 1;

/// Prepares encodings, one file at a time per process. Cheap to clone.
#[derive(Clone)]
pub struct Encoder {
    store: Store,
    clock: Arc<dyn Clock>,
    turn: Arc<Semaphore>,
    publishes: WorkspaceShares,
}

/// The progress on a deployment.
#[derive(Debug, Default)]
struct EncodingProgress {
    /// Number of files compressed.
    encoded: usize,
    /// Whether files remain because time ran out.
    has_rest: bool,
}

/// A file was not compressed.
#[derive(Debug, thiserror::Error)]
enum EncodingError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("a file is not stored")]
    Missing,
    #[error("cannot compress: {0}")]
    Compress(String),
}

impl Encoder {
    pub(crate) fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, turn: Arc::new(Semaphore::new(1)), publishes: WorkspaceShares::new(PUBLISHES) }
    }

    /// Compresses files of a deployment that is about to be published, smallest first, for at most five seconds. The
    /// file in progress is completed; the others are sent uncompressed until the periodic job has compressed them.
    /// Publishes in one workspace wait for each other, so that it takes turns with other workspaces.
    pub async fn prepare(&self, workspace: Uuid, deployment: Uuid) {
        let until = self.clock.monotonic().saturating_add(PUBLISH);
        let this = self.clone();
        let work = tokio::spawn(async move {
            let _permit = this.publishes.for_workspace(workspace).permit().await;
            this.encode(deployment, until).await
        });
        if let Some(Ok(Err(error))) = kernel::timeout(&*self.clock, PUBLISH, work).await {
            tracing::warn!(%error, %deployment, "failed to prepare encodings; retrying later");
        }
    }

    /// Compresses remaining files of active releases. Each deployment gets a few seconds in turn.
    pub(crate) async fn round(&self) -> Result<(), StoreError> {
        loop {
            let (mut has_rest, mut encoded) = (false, 0);
            for deployment in self.store.deployments_to_encode(DEPLOYMENTS).await? {
                let until = self.clock.monotonic().saturating_add(SHARE);
                // A failure must not skip the other deployments.
                match self.encode(deployment, until).await {
                    Ok(progress) => {
                        has_rest |= progress.has_rest;
                        encoded += progress.encoded;
                    }
                    Err(error) => {
                        tracing::warn!(%error, %deployment, "failed to prepare encodings; retrying later");
                    }
                }
            }
            if !has_rest || encoded == 0 {
                return Ok(());
            }
        }
    }

    async fn encode(&self, deployment: Uuid, until: Duration) -> Result<EncodingProgress, StoreError> {
        let mut progress = EncodingProgress::default();
        for file in self.store.files_to_encode(deployment).await? {
            let Ok(_turn) = self.turn.acquire().await else { return Ok(progress) };
            if self.clock.monotonic() >= until {
                progress.has_rest = true;
                return Ok(progress);
            }
            match self.encode_file(deployment, &file.digest).await {
                Ok(()) => progress.encoded += 1,
                Err(EncodingError::Store(error)) => return Err(error),
                // A failure must not skip the other files.
                Err(error) => {
                    tracing::warn!(%error, %deployment, "failed to compress a file; retrying later")
                }
            }
        }
        Ok(progress)
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
