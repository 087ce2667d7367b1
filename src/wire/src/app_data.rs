//! Records of collections, as pages of apps read them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;

/// A record of a collection.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataRecord {
    /// Its id.
    pub id: String,
    /// Counts its changes, from 1.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// What it contains.
    pub data: Map<String, Value>,
}

/// A record after a merge patch of a visitor who cannot read it: most of its data is not the visitor's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedRecord {
    /// Its id.
    pub id: String,
    /// Counts its changes, from 1.
    pub version: i64,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataPage {
    /// The records.
    pub items: Vec<DataRecord>,
    /// For the next page; null: this is the last one.
    pub next_cursor: Option<String>,
}
