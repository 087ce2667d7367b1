//! Large values: content-addressed, in chunks.

use diesel::prelude::*;
use diesel_async::{AsyncConnection, RunQueryDsl};
use ring::digest::{SHA256, digest};

use crate::schema::{blob_chunks, blobs};
use crate::{Store, StoreError};

/// Bytes of a chunk: small enough that a row never strains memory, large enough that there are few.
const CHUNK: usize = 256 * 1024;

impl Store {
    /// Stores a value and yields its SHA-256; the same bytes are stored once.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn put_blob(&self, bytes: &[u8]) -> Result<[u8; 32], StoreError> {
        let mut address = [0_u8; 32];
        address.copy_from_slice(digest(&SHA256, bytes).as_ref());
        let now = self.now();
        let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let mut connection = self.connection().await?;
        connection
            .transaction(async |connection| {
                let new = diesel::insert_into(blobs::table)
                    .values((
                        blobs::digest.eq(address.as_slice()),
                        blobs::size.eq(size),
                        blobs::created_at.eq(now),
                    ))
                    .on_conflict_do_nothing()
                    .execute(connection)
                    .await?;
                if new == 0 {
                    return Ok::<_, StoreError>(());
                }
                for (number, chunk) in (0_i32..).zip(bytes.chunks(CHUNK)) {
                    diesel::insert_into(blob_chunks::table)
                        .values((
                            blob_chunks::digest.eq(address.as_slice()),
                            blob_chunks::number.eq(number),
                            blob_chunks::bytes.eq(chunk),
                        ))
                        .execute(connection)
                        .await?;
                }
                Ok(())
            })
            .await?;
        Ok(address)
    }

    /// The value at this address.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the stored bytes are not those of the address.
    pub async fn blob(&self, address: &[u8; 32]) -> Result<Option<Vec<u8>>, StoreError> {
        let mut connection = self.connection().await?;
        let known: Option<i64> = blobs::table
            .find(address.as_slice())
            .select(blobs::size)
            .first(&mut *connection)
            .await
            .optional()?;
        if known.is_none() {
            return Ok(None);
        }
        let chunks: Vec<Vec<u8>> = blob_chunks::table
            .filter(blob_chunks::digest.eq(address.as_slice()))
            .order(blob_chunks::number)
            .select(blob_chunks::bytes)
            .load(&mut *connection)
            .await?;
        let bytes = chunks.concat();
        if digest(&SHA256, &bytes).as_ref() != address.as_slice() {
            return Err(StoreError::Corrupt("a blob's bytes are not those of its address".to_owned()));
        }
        Ok(Some(bytes))
    }
}
