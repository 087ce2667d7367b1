//! The node catalogue over HTTP.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A node type: `GET /api/nodes/{type}`, and an entry in `GET /api/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeTypeRecord {
    /// Its name: the `type` of a node in a graph.
    pub name: String,
    /// `logic`, `models`, `chat`, …
    pub group: String,
    /// One line.
    pub summary: String,
    /// Its external effect: `pure`, `wait`, `speaks`, `model` or `nested`.
    pub effect: String,
    /// JSON Schema for a whole node of this type.
    pub schema: Value,
    /// The content of `results.<node>`; Markdown.
    pub result: String,
    /// An example node.
    pub example: Value,
}
