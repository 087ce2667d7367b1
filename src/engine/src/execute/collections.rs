//! Collections of the run's app.

use async_trait::async_trait;
use serde_json::{Map, Value};
use wire::ErrorCode;

use crate::NodeError;

/// A query for records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionQuery {
    /// Maximum records.
    pub limit: u32,
    /// Newest first.
    pub descending: bool,
    /// `next_cursor` from the preceding page.
    pub cursor: Option<String>,
}

/// A record to store.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectionPut {
    /// Its data.
    pub data: Map<String, Value>,
    /// The record to replace and its version; `None` for a new record.
    pub replaces: Option<(String, i64)>,
    /// SHA-256 of the run, the node and the visit: a repeated attempt finds the record that an earlier one stored.
    pub attempt: [u8; 32],
}

/// Collections of the app whose page started the run.
#[async_trait]
pub trait Collections: Send + Sync {
    /// Returns a record; `None` if the id does not exist.
    ///
    /// # Errors
    /// [`NodeError`] if the run belongs to no app, the release has no such collection, or the record cannot be read
    /// now.
    async fn get(&self, collection: &str, id: &str) -> Result<Option<Value>, NodeError>;

    /// Returns a page of records, and the cursor for the next one.
    ///
    /// # Errors
    /// As [`Self::get`], and if the cursor belongs to another list.
    async fn query(
        &self,
        collection: &str,
        query: CollectionQuery,
    ) -> Result<(Vec<Value>, Option<String>), NodeError>;

    /// Stores and returns a record.
    ///
    /// # Errors
    /// As [`Self::get`], and for data that the collection does not accept, a version mismatch, or a full collection.
    async fn put(&self, collection: &str, put: CollectionPut) -> Result<Value, NodeError>;
}

/// Collections of a run without an app.
pub struct NoCollections;

/// Returns the error for a run without an app.
#[must_use]
pub fn no_app() -> NodeError {
    NodeError::new(ErrorCode::CollectionNoApp, "only runs that an app has started have collections")
}

#[async_trait]
impl Collections for NoCollections {
    async fn get(&self, _collection: &str, _id: &str) -> Result<Option<Value>, NodeError> {
        Err(no_app())
    }

    async fn query(
        &self,
        _collection: &str,
        _query: CollectionQuery,
    ) -> Result<(Vec<Value>, Option<String>), NodeError> {
        Err(no_app())
    }

    async fn put(&self, _collection: &str, _put: CollectionPut) -> Result<Value, NodeError> {
        Err(no_app())
    }
}
