//! Collection records, as app pages read them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Timestamp;

/// A collection record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataRecord {
    /// Its id.
    pub id: String,
    /// Change counter, from 1.
    pub version: i64,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The content.
    pub data: Map<String, Value>,
}

/// A record after a merge patch by a visitor who cannot read it. It has no data, most of which is not the visitor's.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MergedRecord {
    /// Its id.
    pub id: String,
    /// Change counter, from 1.
    pub version: i64,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// A page of records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataPage {
    /// The records.
    pub items: Vec<DataRecord>,
    /// The cursor of the next page; null: this is the last one.
    pub next_cursor: Option<String>,
}
