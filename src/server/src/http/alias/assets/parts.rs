//! Reads file contents in parts. Small files' parts are cached.

use std::sync::Arc;

use bytes::Bytes;
use moka::sync::Cache;
use ring::digest::{SHA256, digest};
use store::{BLOB_CHUNK, Store};
use wire::ErrorCode;

use super::flights::Flights;
use crate::http::error::{ApiError, ApiResult};

/// Bytes per part.
pub(super) const PART: usize = CHUNKS * BLOB_CHUNK;
/// Chunks per part.
const CHUNKS: usize = 4;
/// Maximum file size for caching its parts.
const MAX_KEPT_FILE: u64 = 4 << 20;
/// Maximum bytes in the part cache.
const MAX_KEPT: u64 = 64 << 20;
/// Approximate overhead per cached part, in addition to its bytes.
const OVERHEAD: usize = 200;

/// The content of a file or its encoded form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blob {
    /// The SHA-256.
    pub(super) digest: [u8; 32],
    /// The size in bytes.
    pub(super) size: u64,
}

type PartKey = ([u8; 32], u32);

/// Reads parts, each once for all waiting requests. Cheap to clone.
#[derive(Clone)]
pub(super) struct PartCache {
    store: Store,
    kept: Cache<PartKey, Bytes>,
    flights: Arc<Flights<PartKey, Bytes>>,
}

impl PartCache {
    pub(super) fn new(store: Store) -> Self {
        let weight = |_: &PartKey, bytes: &Bytes| u32::try_from(bytes.len() + OVERHEAD).unwrap_or(u32::MAX);
        let kept = Cache::builder().weigher(weight).max_capacity(MAX_KEPT).build();
        Self { store, kept, flights: Arc::default() }
    }

    /// Returns a part from the cache, if present.
    pub(super) fn kept(&self, blob: &Blob, number: u32) -> Option<Bytes> {
        (blob.size <= MAX_KEPT_FILE).then(|| self.kept.get(&(blob.digest, number))).flatten()
    }

    /// Returns a part: [`PART`] bytes, or the rest at the end. Holds no connection afterwards.
    ///
    /// # Errors
    /// [`ApiError`] if the database does not answer.
    pub(super) async fn read(&self, blob: &Blob, number: u32) -> ApiResult<Bytes> {
        if let Some(known) = self.kept(blob, number) {
            return Ok(known);
        }
        if blob.size > MAX_KEPT_FILE {
            return self.fetch(blob, number).await;
        }
        let key = (blob.digest, number);
        let read = async {
            if let Some(known) = self.kept.get(&key) {
                return ApiResult::Ok(known);
            }
            let bytes = self.fetch(blob, number).await?;
            self.kept.insert(key, bytes.clone());
            Ok(bytes)
        };
        self.flights.read(key, read).await
    }

    async fn fetch(&self, blob: &Blob, number: u32) -> ApiResult<Bytes> {
        let damaged =
            || ApiError::new(ErrorCode::Internal).with_cause("a file's bytes are not those of its digest");
        let chunks = i32::try_from(CHUNKS).unwrap_or(i32::MAX);
        let first = i32::try_from(number).unwrap_or(i32::MAX).saturating_mul(chunks);
        let bytes = self.store.blob_part(&blob.digest, first, chunks).await?;
        let part = u64::try_from(PART).unwrap_or(u64::MAX);
        let expected = blob.size.saturating_sub(part.saturating_mul(number.into())).min(part);
        if u64::try_from(bytes.len()) != Ok(expected) {
            return Err(damaged());
        }
        // Content with only one part is verified by its digest.
        if blob.size <= part && digest(&SHA256, &bytes).as_ref() != blob.digest {
            return Err(damaged());
        }
        Ok(bytes.into())
    }
}
