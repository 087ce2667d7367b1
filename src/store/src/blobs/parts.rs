//! Stores many blobs in parts that fit into memory, for a bundle's files.

use std::collections::HashSet;

use diesel::sql_types::{Array, BigInt, Bytea, Int4, Timestamptz};
use diesel_async::{AsyncConnection as _, RunQueryDsl};

use super::records::CHUNK;
use crate::database::scalar::Scalar;
use crate::{Store, StoreError};

/// Bytes per blob chunk.
pub const BLOB_CHUNK: usize = CHUNK;

/// A blob chunk: [`BLOB_CHUNK`] bytes, or the rest at the end.
#[derive(Debug, Clone)]
pub struct BlobPart {
    /// The blob's SHA-256.
    pub digest: [u8; 32],
    /// The blob's bytes.
    pub size: u64,
    /// The chunk's number, from 0.
    pub number: i32,
    /// The chunk's content.
    pub bytes: Vec<u8>,
}

impl Store {
    /// Returns those blobs that are stored and in use; they are kept for at least a day from now.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn used_blobs(&self, digests: &[[u8; 32]]) -> Result<HashSet<[u8; 32]>, StoreError> {
        let digests: Vec<&[u8]> = digests.iter().map(<[u8; 32]>::as_slice).collect();
        // Sorted, so that two uploads do not deadlock.
        let rows: Vec<Scalar<Vec<u8>>> = diesel::sql_query(
            "WITH found AS MATERIALIZED (SELECT digest FROM blobs b WHERE digest = ANY($1)
                 AND EXISTS (SELECT FROM blob_uses u WHERE u.digest = b.digest) ORDER BY digest FOR UPDATE)
             UPDATE blobs b SET created_at = $2 FROM found WHERE b.digest = found.digest RETURNING b.digest",
        )
        .bind::<Array<Bytea>, _>(digests)
        .bind::<Timestamptz, _>(self.now())
        .load(&mut *self.connection().await?)
        .await?;
        Ok(rows.into_iter().filter_map(|row| row.0.try_into().ok()).collect())
    }

    /// Stores blob chunks, ordered by digest. A blob is usable when all its chunks are stored.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn put_blob_parts(&self, parts: Vec<BlobPart>) -> Result<(), StoreError> {
        let (mut digests, mut sizes, mut numbers, mut bytes) = (vec![], vec![], vec![], vec![]);
        for part in parts {
            digests.push(part.digest.to_vec());
            sizes.push(i64::try_from(part.size).unwrap_or(i64::MAX));
            numbers.push(part.number);
            bytes.push(part.bytes);
        }
        let now = self.now();
        let mut connection = self.connection().await?;
        let stored = connection.transaction(async |connection| {
            // First, so that no blob is deleted while its chunks are stored.
            diesel::sql_query(
                "INSERT INTO blobs (digest, size, created_at)
                 SELECT DISTINCT digest, size, $3 FROM unnest($1, $2) AS p (digest, size) ORDER BY digest
                 ON CONFLICT (digest) DO UPDATE SET created_at = excluded.created_at",
            )
            .bind::<Array<Bytea>, _>(&digests)
            .bind::<Array<BigInt>, _>(&sizes)
            .bind::<Timestamptz, _>(now)
            .execute(connection)
            .await?;
            diesel::sql_query(
                "INSERT INTO blob_chunks (digest, number, bytes)
                 SELECT digest, number, bytes FROM unnest($1, $2, $3) AS p (digest, number, bytes)
                 ON CONFLICT DO NOTHING",
            )
            .bind::<Array<Bytea>, _>(&digests)
            .bind::<Array<Int4>, _>(&numbers)
            .bind::<Array<Bytea>, _>(&bytes)
            .execute(connection)
            .await
        });
        stored.await?;
        Ok(())
    }
}
