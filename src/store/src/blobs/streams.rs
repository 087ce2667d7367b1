//! Streams for blobs too large for memory: written as their bytes arrive, read chunk by chunk. No connection is
//! held between two calls.

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Bytea, Int4, Timestamptz, Uuid as SqlUuid};
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use ring::digest::{Context, SHA256};
use tokio::runtime::Handle;
use uuid::Uuid;

use crate::blobs::records::CHUNK;
use crate::blobs::uses::{BlobUse, insert};
use crate::database::scalar::Scalar;
use crate::schema::{blob_chunks, blobs};
use crate::{Store, StoreError};

/// Maximum chunks moved into a blob per statement.
const MOVED_AT_ONCE: usize = 64;

/// A blob that is being written. Dropping it deletes the written bytes.
pub struct BlobWriter {
    left: Chunks,
    number: i32,
    size: u64,
    digest: Context,
    /// The bytes that do not fill a chunk yet.
    rest: Vec<u8>,
    /// Whether chunks are stored; otherwise only the digest is computed.
    stores: bool,
}

impl BlobWriter {
    /// Bytes written so far.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Adds bytes. Stores each full chunk (256 KiB).
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer; the blob cannot be finished then.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), StoreError> {
        self.digest.update(bytes);
        self.size = self.size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        while self.rest.len() + bytes.len() >= CHUNK {
            let (now, later) = bytes.split_at(CHUNK - self.rest.len());
            self.rest.extend_from_slice(now);
            bytes = later;
            self.store_rest().await?;
        }
        self.rest.extend_from_slice(bytes);
        Ok(())
    }

    async fn store_rest(&mut self) -> Result<(), StoreError> {
        if !self.stores {
            self.rest.clear();
            return Ok(());
        }
        let sql = "INSERT INTO upload_chunks (upload_id, number, bytes, created_at) VALUES ($1, $2, $3, $4)";
        diesel::sql_query(sql)
            .bind::<SqlUuid, _>(self.left.upload)
            .bind::<Int4, _>(self.number)
            .bind::<Bytea, _>(std::mem::take(&mut self.rest))
            .bind::<Timestamptz, _>(self.left.store.now())
            .execute(&mut *self.left.store.connection().await?)
            .await?;
        self.number += 1;
        Ok(())
    }

    /// Ends the writing, without creating a blob yet.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn end(mut self) -> Result<WrittenBlob, StoreError> {
        if !self.rest.is_empty() {
            self.store_rest().await?;
        }
        let mut address = [0_u8; 32];
        address.copy_from_slice(self.digest.clone().finish().as_ref());
        Ok(WrittenBlob { left: self.left, number: self.number, size: self.size, address })
    }

    /// Creates a blob with a use from the written bytes; returns its SHA-256. Equal bytes are stored once.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn finish(self, wanted: BlobUse) -> Result<[u8; 32], StoreError> {
        let (store, now) = (self.left.store.clone(), self.left.store.now());
        let written = self.end().await?;
        let mut connection = store.connection().await?;
        connection
            .transaction(async |connection| {
                written.store(connection, now).await?;
                insert(connection, &written.address, wanted).await
            })
            .await?;
        Ok(written.address)
    }
}

/// An upload's chunks. Dropping it deletes the remaining ones; after a crash, retention deletes them when the
/// last one is an hour old.
struct Chunks {
    store: Store,
    upload: Uuid,
}

impl Drop for Chunks {
    fn drop(&mut self) {
        let Ok(runtime) = Handle::try_current() else { return };
        let (store, upload) = (self.store.clone(), self.upload);
        runtime.spawn(async move {
            if let Err(error) = store.forget_upload(upload).await {
                tracing::debug!(%error, "failed to delete the chunks of an upload; retrying later");
            }
        });
    }
}

/// Written bytes that are not a blob yet. Dropping it deletes them.
pub struct WrittenBlob {
    left: Chunks,
    number: i32,
    size: u64,
    address: [u8; 32],
}

impl WrittenBlob {
    /// The bytes' SHA-256.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        self.address
    }

    /// The number of bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the bytes. Only for values small enough for memory.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn read(&self) -> Result<Vec<u8>, StoreError> {
        let rows: Vec<Scalar<Vec<u8>>> =
            diesel::sql_query("SELECT bytes FROM upload_chunks WHERE upload_id = $1 ORDER BY number")
                .bind::<SqlUuid, _>(self.left.upload)
                .load(&mut *self.left.store.connection().await?)
                .await?;
        let mut bytes = Vec::with_capacity(usize::try_from(self.size).unwrap_or_default());
        rows.into_iter().for_each(|row| bytes.extend(row.0));
        Ok(bytes)
    }

    /// Creates the blob, in a transaction that also stores its first use.
    pub(crate) async fn store(
        &self,
        connection: &mut AsyncPgConnection,
        now: DateTime<Utc>,
    ) -> Result<(), StoreError> {
        diesel::sql_query(
            "INSERT INTO blobs (digest, size, created_at) VALUES ($1, $2, $3)
             ON CONFLICT (digest) DO UPDATE SET created_at = excluded.created_at",
        )
        .bind::<Bytea, _>(self.address.as_slice())
        .bind::<BigInt, _>(i64::try_from(self.size).unwrap_or(i64::MAX))
        .bind::<Timestamptz, _>(now)
        .execute(connection)
        .await?;
        let mut moved = 0;
        // In parts: a statement has a time limit, and a file may have 1 GiB.
        for first in (0..self.number).step_by(MOVED_AT_ONCE) {
            moved += diesel::sql_query(
                "WITH written AS (DELETE FROM upload_chunks WHERE upload_id = $1 AND number >= $3 AND number < $3 + $4
                     RETURNING number, bytes),
                 kept AS (INSERT INTO blob_chunks (digest, number, bytes)
                     SELECT $2, number, bytes FROM written ON CONFLICT DO NOTHING)
                 SELECT FROM written",
            )
            .bind::<SqlUuid, _>(self.left.upload)
            .bind::<Bytea, _>(self.address.as_slice())
            .bind::<Int4, _>(first)
            .bind::<Int4, _>(i32::try_from(MOVED_AT_ONCE).unwrap_or(i32::MAX))
            .execute(connection)
            .await?;
        }
        if i32::try_from(moved) == Ok(self.number) {
            Ok(())
        } else {
            Err(StoreError::Corrupt("chunks of an upload are missing".to_owned()))
        }
    }
}

/// A blob that is being read.
pub struct BlobReader {
    store: Store,
    address: [u8; 32],
    size: u64,
    number: i32,
    read: u64,
    digest: Context,
}

impl BlobReader {
    /// The whole blob's bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns the next chunk; `None` after the last one.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if the bytes do not match the address, at the last chunk at the latest.
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        let damaged = || StoreError::Corrupt("a blob's bytes are not those of its address".to_owned());
        if self.read >= self.size {
            return Ok(None);
        }
        let chunk: Option<Vec<u8>> = blob_chunks::table
            .find((self.address.as_slice(), self.number))
            .select(blob_chunks::bytes)
            .first(&mut *self.store.connection().await?)
            .await
            .optional()?;
        let chunk = chunk.filter(|chunk| !chunk.is_empty()).ok_or_else(damaged)?;
        self.number += 1;
        self.read = self.read.saturating_add(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        self.digest.update(&chunk);
        let ends = self.read >= self.size;
        if ends && (self.read > self.size || self.digest.clone().finish().as_ref() != self.address) {
            return Err(damaged());
        }
        Ok(Some(chunk))
    }
}

impl Store {
    /// Starts writing a blob. `upload`: a new id.
    #[must_use]
    pub fn write_blob(&self, upload: Uuid) -> BlobWriter {
        let digest = Context::new(&SHA256);
        let left = Chunks { store: self.clone(), upload };
        BlobWriter { left, number: 0, size: 0, digest, rest: Vec::new(), stores: true }
    }

    /// As [`Self::write_blob`], for comparing bytes: nothing is stored.
    #[must_use]
    pub fn hash_blob(&self, upload: Uuid) -> BlobWriter {
        BlobWriter { stores: false, ..self.write_blob(upload) }
    }

    /// Starts reading the blob at this address, if there is one.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn read_blob(&self, address: [u8; 32]) -> Result<Option<BlobReader>, StoreError> {
        let size: Option<i64> = blobs::table
            .find(address.as_slice())
            .select(blobs::size)
            .first(&mut *self.connection().await?)
            .await
            .optional()?;
        let digest = Context::new(&SHA256);
        let reader = |size| BlobReader { store: self.clone(), address, size, number: 0, read: 0, digest };
        Ok(size.map(|size| reader(u64::try_from(size).unwrap_or_default())))
    }

    /// Deletes an upload's chunks.
    async fn forget_upload(&self, upload: Uuid) -> Result<(), StoreError> {
        diesel::sql_query("DELETE FROM upload_chunks WHERE upload_id = $1")
            .bind::<SqlUuid, _>(upload)
            .execute(&mut *self.connection().await?)
            .await?;
        Ok(())
    }

    /// Deletes the chunks of uploads whose last chunk was written before then.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn forget_old_uploads(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        // An upload that still receives bytes has a recent chunk.
        diesel::sql_query(
            "DELETE FROM upload_chunks c WHERE created_at < $1 AND NOT EXISTS (
                 SELECT FROM upload_chunks y WHERE y.upload_id = c.upload_id AND y.created_at >= $1)",
        )
        .bind::<Timestamptz, _>(before)
        .execute(&mut *self.connection().await?)
        .await?;
        Ok(())
    }
}
