//! Large values: content-addressed, in chunks.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use diesel::prelude::*;
use diesel_async::{AsyncConnection, AsyncPgConnection, RunQueryDsl};
use ring::digest::{SHA256, digest};

use crate::schema::{blob_chunks, blobs};
use crate::{Store, StoreError};

/// Bytes per chunk: small enough for memory, large enough to keep the rows few.
pub(crate) const CHUNK: usize = 256 * 1024;

/// A value's address: its SHA-256.
pub(crate) fn address(bytes: &[u8]) -> [u8; 32] {
    let mut address = [0_u8; 32];
    address.copy_from_slice(digest(&SHA256, bytes).as_ref());
    address
}

/// A value's chunks with their numbers.
pub(crate) fn chunks(bytes: &[u8]) -> impl Iterator<Item = (i32, &[u8])> {
    (0_i32..).zip(bytes.chunks(CHUNK))
}

impl Store {
    /// Stores a value and returns its SHA-256; equal bytes are stored once.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn put_blob(&self, bytes: &[u8]) -> Result<[u8; 32], StoreError> {
        let now = self.now();
        let mut connection = self.connection().await?;
        connection.transaction(async |connection| put(connection, bytes, now).await).await
    }

    /// Returns the value at this address.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when the stored bytes do not match the address.
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
        verified(bytes, address).map(Some)
    }

    /// Returns the existing values at these addresses.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when stored bytes do not match their address.
    pub(crate) async fn blobs(&self, addresses: &[Vec<u8>]) -> Result<HashMap<Vec<u8>, Vec<u8>>, StoreError> {
        let mut values: HashMap<Vec<u8>, Vec<u8>> = HashMap::new();
        if addresses.is_empty() {
            return Ok(values);
        }
        let rows: Vec<(Vec<u8>, Vec<u8>)> = blob_chunks::table
            .filter(blob_chunks::digest.eq_any(addresses))
            .order((blob_chunks::digest, blob_chunks::number))
            .select((blob_chunks::digest, blob_chunks::bytes))
            .load(&mut *self.connection().await?)
            .await?;
        for (address, mut bytes) in rows {
            values.entry(address).or_default().append(&mut bytes);
        }
        values.into_iter().map(|(address, bytes)| Ok((address.clone(), verified(bytes, &address)?))).collect()
    }
}

/// Stores a value in a transaction and returns its SHA-256.
pub(crate) async fn put(
    connection: &mut AsyncPgConnection,
    bytes: &[u8],
    now: DateTime<Utc>,
) -> Result<[u8; 32], StoreError> {
    let address = address(bytes);
    let size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    diesel::insert_into(blobs::table)
        .values((blobs::digest.eq(address.as_slice()), blobs::size.eq(size), blobs::created_at.eq(now)))
        .on_conflict(blobs::digest)
        // Resets the age, or the blob could be deleted as unreferenced.
        .do_update()
        .set(blobs::created_at.eq(now))
        .execute(connection)
        .await?;
    for (number, chunk) in chunks(bytes) {
        diesel::insert_into(blob_chunks::table)
            .values((
                blob_chunks::digest.eq(address.as_slice()),
                blob_chunks::number.eq(number),
                blob_chunks::bytes.eq(chunk),
            ))
            .on_conflict_do_nothing()
            .execute(connection)
            .await?;
    }
    Ok(address)
}

fn verified(bytes: Vec<u8>, address: &[u8]) -> Result<Vec<u8>, StoreError> {
    if digest(&SHA256, &bytes).as_ref() != address {
        return Err(StoreError::Corrupt("a blob's bytes are not those of its address".to_owned()));
    }
    Ok(bytes)
}
