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

/// Every workflow that a graph names, in the order of its nodes; also of one with mistakes.
#[must_use]
pub fn references(graph: &Value) -> Vec<Reference> {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for (index, node) in nodes.enumerate() {
        let pointer = format!("/nodes/{index}");
        let body = node.get("body").filter(|_| kind(node) == Some("for_each"));
        if let Some(body) = body {
            found.extend(reference(body, format!("{pointer}/body")));
        }
        let tools = node.get("tools").and_then(Value::as_array).filter(|_| kind(node) == Some("agent"));
        for (index, tool) in tools.into_iter().flatten().enumerate() {
            let pointer = format!("{pointer}/tools/{index}");
            match kind(tool) {
                Some("workflow") => found.extend(named(tool, pointer)),
                Some("node") => {
                    found
                        .extend(tool.get("node").and_then(|node| reference(node, format!("{pointer}/node"))));
                }
                _ => {}
            }
        }
        found.extend(reference(node, pointer));
    }
    found
}

pub(crate) fn kind(node: &Value) -> Option<&str> {
    node.get("type")?.as_str()
}

fn reference(node: &Value, pointer: String) -> Option<Reference> {
    if kind(node)? != "sub_workflow" {
        return None;
    }
    named(node, pointer)
}

pub(crate) fn named(node: &Value, pointer: String) -> Option<Reference> {
    let workflow = node.get("workflow")?.as_str()?.to_owned();
    let version = node.get("version").and_then(Value::as_u64);
    Some(Reference { pointer, workflow, version })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn workflows_are_found_also_inside_of_loops_and_tools() {
        let graph = json!({"nodes": [
            {"name": "a", "type": "sub_workflow", "workflow": "one"},
            {"name": "b", "type": "for_each", "items": [], "body": {"type": "sub_workflow", "workflow": "two", "version": 3}},
            {"name": "c", "type": "set", "values": {"type": "sub_workflow", "workflow": "none"}, "body": {"type": "sub_workflow", "workflow": "none"}},
            {"name": "d", "type": "sub_workflow", "workflow": 1}, 7,
            {"name": "e", "type": "agent", "tools": [
                {"type": "workflow", "workflow": "three"}, {"type": "http"},
                {"type": "node", "node": {"type": "sub_workflow", "workflow": "four"}}]},
        ]});
        let at = |pointer: &str, workflow: &str, version| Reference {
            pointer: pointer.into(),
            workflow: workflow.into(),
            version,
        };
        assert_eq!(
            references(&graph),
            [
                at("/nodes/0", "one", None),
                at("/nodes/1/body", "two", Some(3)),
                at("/nodes/5/tools/0", "three", None),
                at("/nodes/5/tools/2/node", "four", None),
            ]
        );
        assert_eq!(references(&json!(null)), []);
    }
}
