//! The node catalogue over HTTP.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A type of node: `GET /api/nodes/{type}`, and an entry of `GET /api/nodes`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NodeTypeRecord {
    /// Its name: the `type` of a node in a graph.
    pub name: String,
    /// `logic`, `models`, `chat`, …
    pub group: String,
    /// One line.
    pub summary: String,
    /// What it does to the world: `pure`, `wait`, `speaks`, `model` or `nested`.
    pub effect: String,
    /// JSON Schema of a whole node of this type.
    pub schema: Value,
    /// What `results.<node>` is; Markdown.
    pub result: String,
    /// A node of this type.
    pub example: Value,
}
