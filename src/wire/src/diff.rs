//! What differs between two versions.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// `GET /api/workflows/{ref}/versions/{a}/diff/{b}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionDiff {
    /// The number of the version that is compared with; null for a draft.
    pub base: Option<i32>,
    /// The number of the version that is looked at; null for a draft.
    pub target: Option<i32>,
    /// Every difference, always in the same order; empty when both do the same.
    pub changes: Vec<Change>,
}

/// One difference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// The node; null for what belongs to the graph as a whole and for the runnable config.
    pub node: Option<String>,
    /// The field of the node, or the part of the graph; null when the whole node came or went.
    pub field: Option<String>,
    /// What stood there; null when there was nothing.
    pub before: Value,
    /// What stands there now; null when there is nothing.
    pub after: Value,
}
