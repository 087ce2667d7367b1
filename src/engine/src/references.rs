//! Other workflows that a graph names. The engine does not check whether they exist, because that may change at any
//! time.

use serde_json::Value;

/// A workflow named by a `sub_workflow` or an `agent` tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// JSON pointer to the node.
    pub pointer: String,
    /// Its handle or id, as written.
    pub workflow: String,
    /// Its version, if given.
    pub version: Option<u64>,
}

pub(crate) fn kind(node: &Value) -> Option<&str> {
    node.get("type")?.as_str()
}

pub(crate) fn named(node: &Value, pointer: String) -> Option<Reference> {
    let workflow = node.get("workflow")?.as_str()?.to_owned();
    let version = node.get("version").and_then(Value::as_u64);
    Some(Reference { pointer, workflow, version })
}
