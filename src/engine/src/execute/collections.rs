//! Collections of the app that a run belongs to.

use async_trait::async_trait;
use serde_json::{Map, Value};
use wire::ErrorCode;

use crate::NodeError;

/// Which records are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionQuery {
    /// Most records.
    pub limit: u32,
    /// Newest first.
    pub descending: bool,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// A record to store.
#[derive(Debug, Clone, PartialEq)]
pub struct CollectionPut {
    /// Its data.
    pub data: Map<String, Value>,
    /// The record that it replaces, and the version that this has; `None`: it is a new one.
    pub replaces: Option<(String, i64)>,
    /// SHA-256 of the run, the node and its visit: a repeated attempt finds what an earlier one has stored.
    pub attempt: [u8; 32],
}

/// Collections of the app whose page has started the run.
#[async_trait]
pub trait Collections: Send + Sync {
    /// A record; `None` if there is none with this id.
    ///
    /// # Errors
    /// [`NodeError`] if the run belongs to no app, the release has no such collection, or it cannot be read now.
    async fn get(&self, collection: &str, id: &str) -> Result<Option<Value>, NodeError>;

    /// A page of records, and the cursor of the next one.
    ///
    /// # Errors
    /// As [`Self::get`], and for a cursor of another list.
    async fn query(
        &self,
        collection: &str,
        query: CollectionQuery,
    ) -> Result<(Vec<Value>, Option<String>), NodeError>;

    /// Stores a record, and returns it.
    ///
    /// # Errors
    /// As [`Self::get`], and for data that the collection does not take, another version, or a full collection.
    async fn put(&self, collection: &str, put: CollectionPut) -> Result<Value, NodeError>;
}

/// A run that belongs to no app.
pub struct NoCollections;

/// The error of a run that belongs to no app.
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
