//! External data: databases that graphs name, and the workspace's search indexes.

use std::time::Duration;

use async_trait::async_trait;
use kernel::Secret;
use serde_json::{Map, Value};

use crate::NodeError;
use crate::search::{ChunkLocation, IndexedChunk, Ranked};

/// A query to a database that a graph names.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseQuery {
    /// One statement.
    pub sql: String,
    /// Values for `$1`, `$2`, ….
    pub parameters: Vec<Value>,
    /// Whether it may change anything.
    pub writes: bool,
    /// Time limit.
    pub time: Duration,
    /// Maximum rows.
    pub rows: usize,
    /// Maximum bytes of all rows as JSON.
    pub bytes: usize,
}

/// A query's result.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseRows {
    /// One object per row.
    pub rows: Vec<Value>,
    /// Number of rows returned or changed.
    pub count: u64,
}

/// Databases that graphs name, never the service's own.
#[async_trait]
pub trait Databases: Send + Sync {
    /// The password in a DSN, which a run must never reveal.
    fn password(&self, dsn: &Secret) -> Option<Secret>;

    /// Executes one statement.
    ///
    /// # Errors
    /// [`NodeError`] if the database may not be called, does not answer or refuses; contains no secret.
    async fn query(&self, dsn: &Secret, query: DatabaseQuery) -> Result<DatabaseRows, NodeError>;
}

/// A chunk from an index.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundChunk {
    /// Its location.
    pub place: ChunkLocation,
    /// Its document's name, as given.
    pub document: String,
    /// Its text.
    pub text: String,
    /// A JSON object.
    pub metadata: Value,
}

/// The workspace's search indexes.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Replaces a document's chunks and returns the number of replaced ones. Creates the index if needed; without
    /// chunks, deletes the document.
    ///
    /// # Errors
    /// [`NodeError`] if the index is full, holds vectors with another length, or cannot be written now.
    async fn upsert(&self, index: &str, document: &str, chunks: Vec<IndexedChunk>) -> Result<u64, NodeError>;

    /// Returns the best matches for these terms by BM25, among chunks whose metadata has the filter's members.
    ///
    /// # Errors
    /// [`NodeError`] if the index does not exist, or cannot be read now.
    async fn text(
        &self,
        index: &str,
        terms: &[String],
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError>;

    /// Returns the chunks with the nearest vectors by cosine, among chunks whose metadata has the filter's members.
    ///
    /// # Errors
    /// [`NodeError`] if the index does not exist, holds vectors with another length, or cannot be read now.
    async fn vector(
        &self,
        index: &str,
        vector: Vec<f32>,
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError>;

    /// Returns the chunks at these locations, in any order; missing ones are left out.
    ///
    /// # Errors
    /// [`NodeError`] if the chunks cannot be read now.
    async fn chunks(&self, index: &str, places: &[ChunkLocation]) -> Result<Vec<FoundChunk>, NodeError>;
}
