//! Large journal results.

use chrono::{DateTime, Utc};
use diesel::sql_types::{BigInt, Bytea, Integer, Timestamptz};

/// Maximum result bytes in a journal row; larger results become blobs.
pub const INLINE_RESULT: usize = 8 << 10;

lane_table! {
    Blobs: "blobs" from ([u8; 32], &'a str, DateTime<Utc>) as (digest, value, created_at) => {
        digest: Vec<u8> [Bytea] = digest.to_vec(),
        size: i64 [BigInt] = i64::try_from(value.len()).unwrap_or(i64::MAX),
        created_at: DateTime<Utc> [Timestamptz] = created_at,
    }
}

lane_table! {
    Chunks: "blob_chunks" from ([u8; 32], i32, &'a [u8]) as (digest, number, bytes) => {
        digest: Vec<u8> [Bytea] = digest.to_vec(),
        number: i32 [Integer] = number,
        bytes: &'a [u8] [Bytea] = bytes,
    }
}
