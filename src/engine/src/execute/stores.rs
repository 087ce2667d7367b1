//! Data outside of the run: databases that graphs name, and search indexes of the workspace.

use std::time::Duration;

use async_trait::async_trait;
use kernel::Secret;
use serde_json::{Map, Value};

use crate::NodeError;
use crate::search::{ChunkPlace, IndexedChunk, Ranked};

/// What a database that a graph names is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseQuery {
    /// One statement.
    pub sql: String,
    /// Its `$1`, `$2`, ….
    pub parameters: Vec<Value>,
    /// Whether it may change anything.
    pub writes: bool,
    /// How long it may take.
    pub time: Duration,
    /// Most rows.
    pub rows: usize,
    /// Bytes of all rows, as JSON.
    pub bytes: usize,
}

/// What it answered.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseRows {
    /// An object for each row.
    pub rows: Vec<Value>,
    /// How many rows there are, or were changed.
    pub count: u64,
}

/// Databases that graphs name, none of them the service's own.
#[async_trait]
pub trait Databases: Send + Sync {
    /// The password of an address, which a run may never say.
    fn password(&self, dsn: &Secret) -> Option<Secret>;

    /// Does one statement.
    ///
    /// # Errors
    /// [`NodeError`] when the database may not be called, does not answer or refuses; without any secret.
    async fn query(&self, dsn: &Secret, query: DatabaseQuery) -> Result<DatabaseRows, NodeError>;
}

/// A chunk of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundChunk {
    /// Where it is.
    pub place: ChunkPlace,
    /// Its document as it was named.
    pub document: String,
    /// What it says.
    pub text: String,
    /// An object.
    pub metadata: Value,
}

/// Search indexes of the same workspace.
#[async_trait]
pub trait SearchIndex: Send + Sync {
    /// Puts these chunks in the place of those that the document had, and yields how many these were. The index is made
    /// when it is not there; without chunks the document is deleted.
    ///
    /// # Errors
    /// [`NodeError`] when the index is full, holds vectors of another length, or cannot be written now.
    async fn upsert(&self, index: &str, document: &str, chunks: Vec<IndexedChunk>) -> Result<u64, NodeError>;

    /// The chunks that these terms fit best, by BM25, of those whose metadata has these members.
    ///
    /// # Errors
    /// [`NodeError`] when there is no such index, or it cannot be read now.
    async fn text(
        &self,
        index: &str,
        terms: &[String],
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError>;

    /// The chunks whose vectors are nearest to this one, by cosine, of those whose metadata has these members.
    ///
    /// # Errors
    /// [`NodeError`] when there is no such index, it holds vectors of another length, or it cannot be read now.
    async fn vector(
        &self,
        index: &str,
        vector: Vec<f32>,
        filter: Option<&Map<String, Value>>,
        most: usize,
    ) -> Result<Vec<Ranked>, NodeError>;

    /// The chunks at these places, in any order; one that is gone meanwhile is left out.
    ///
    /// # Errors
    /// [`NodeError`] when they cannot be read now.
    async fn chunks(&self, index: &str, places: &[ChunkPlace]) -> Result<Vec<FoundChunk>, NodeError>;
}
