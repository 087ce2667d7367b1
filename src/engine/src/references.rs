//! Other workflows that a graph names. Whether they are there is not for the engine to say, and may change at any time.

use serde_json::Value;

/// A workflow that a `sub_workflow` or a tool of an `agent` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// JSON pointer to the node.
    pub pointer: String,
    /// Its handle or id, as it stands there.
    pub workflow: String,
    /// Its version, where one is asked for.
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
