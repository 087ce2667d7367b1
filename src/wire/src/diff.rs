//! Differences between two versions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /api/workflows/{ref}/versions/{a}/diff/{b}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionDiff {
    /// The base version's number; null for a draft.
    pub base: Option<i32>,
    /// The compared version's number; null for a draft.
    pub target: Option<i32>,
    /// Every difference, always in the same order; empty if both versions are equivalent.
    pub changes: Vec<Change>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The node; null for the graph as a whole and for the runnable config.
    pub node: Option<String>,
    /// The field of the node, or the part of the graph; null if the whole node was added or removed.
    pub field: Option<String>,
    /// The old value, or null.
    pub before: Value,
    /// The new value, or null.
    pub after: Value,
}
