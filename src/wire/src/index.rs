//! Search indexes over HTTP.

use serde::{Deserialize, Serialize};

/// A search index of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IndexRecord {
    /// As `index_upsert` and `index_search` name it.
    pub name: String,
    /// How many documents it has.
    pub documents: i64,
    /// How many chunks these have.
    pub chunks: i64,
    /// How many of them have a vector.
    pub vectors: i64,
    /// Numbers of such a vector; null where none has one.
    pub dimensions: Option<i32>,
}
