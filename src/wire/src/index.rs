//! Search indexes over HTTP.

use serde::{Deserialize, Serialize};

/// A workspace's search index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexRecord {
    /// Its name in `index_upsert` and `index_search`.
    pub name: String,
    /// Number of documents.
    pub documents: i64,
    /// Number of chunks.
    pub chunks: i64,
    /// Number of chunks with a vector.
    pub vectors: i64,
    /// Vector dimensions; null without vectors.
    pub dimensions: Option<i32>,
}
