//! What the nodes of a graph may do to the world, as it is written: a training refuses graphs that would send something.

use serde_json::Value;

use crate::execute::Effect;
use crate::nodes;
use crate::references::{Reference, kind, named};

/// A node of a graph, on its own or inside another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEffect {
    /// JSON pointer to it.
    pub pointer: String,
    /// Its name in traces, without numbers: `each` for the nodes of a `for_each`, `agent.tool` for those of a tool.
    pub node: String,
    /// Its type; `mcp` for a server of an agent.
    pub kind: String,
    /// What it may do, with its fields as they are written: a fixed GET only reads.
    pub effect: Effect,
    /// The workflow that it runs.
    pub workflow: Option<Reference>,
}

/// The effects of every node, in the order of the graph; nothing of nodes that have no known type.
#[must_use]
pub fn effects(graph: &Value) -> Vec<NodeEffect> {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for (index, node) in nodes.enumerate() {
        let pointer = format!("/nodes/{index}");
        let name = node.get("name").and_then(Value::as_str).unwrap_or_default();
        match kind(node) {
            Some("for_each") => {
                let body = node.get("body").unwrap_or(&Value::Null);
                found.extend(of_node(body, format!("{pointer}/body"), name));
            }
            Some("agent") => {
                found.extend(of_node(node, pointer.clone(), name));
                let tools = node.get("tools").and_then(Value::as_array).into_iter().flatten();
                for (index, tool) in tools.enumerate() {
                    found.extend(of_tool(tool, format!("{pointer}/tools/{index}"), name));
                }
            }
            _ => found.extend(of_node(node, pointer, name)),
        }
    }
    found
}

fn of_node(node: &Value, pointer: String, name: &str) -> Option<NodeEffect> {
    let kind = kind(node)?;
    let workflow = (kind == "sub_workflow").then(|| named(node, pointer.clone())).flatten();
    let effect = match kind {
        "http_request" if only_asks(node) => Effect::Reads,
        "postgres_query" if node.get("mode").is_none_or(|mode| mode == "read") => Effect::Reads,
        _ => nodes::find(kind).ok()?.effect,
    };
    Some(NodeEffect { pointer, node: name.to_owned(), kind: kind.to_owned(), effect, workflow })
}

fn of_tool(tool: &Value, pointer: String, agent: &str) -> Option<NodeEffect> {
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let name = format!("{agent}.{name}");
    let plain = |kind: &str, effect, workflow| {
        let (pointer, kind) = (pointer.clone(), kind.to_owned());
        Some(NodeEffect { pointer, node: name.clone(), kind, effect, workflow })
    };
    match kind(tool)? {
        "node" => of_node(tool.get("node")?, format!("{pointer}/node"), &name),
        "http" => {
            let request = tool.get("request")?;
            plain("http_request", if only_asks(request) { Effect::Reads } else { Effect::Outbound }, None)
        }
        "code" => plain("code", Effect::Pure, None),
        "client" => plain("client_tool", Effect::Wait, None),
        "workflow" => plain("sub_workflow", Effect::Nested, named(tool, pointer.clone())),
        // Its tools say only when they run what they do.
        "mcp" => Some(NodeEffect {
            pointer,
            node: format!("{agent}.mcp"),
            kind: "mcp".to_owned(),
            effect: Effect::Outbound,
            workflow: None,
        }),
        _ => None,
    }
}

/// Whether the request's method is fixed and changes nothing.
fn only_asks(request: &Value) -> bool {
    request.get("method").is_none_or(|method| method == "GET" || method == "HEAD")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn effects_are_those_of_the_fields_as_written() {
        let graph = json!({"nodes": [
            {"name": "a", "type": "template", "template": "x"},
            {"name": "get", "type": "http_request", "url": "https://example.org"},
            {"name": "post", "type": "http_request", "method": "POST", "url": "https://example.org"},
            {"name": "read", "type": "postgres_query", "sql": "SELECT 1"},
            {"name": "write", "type": "postgres_query", "mode": "write", "sql": "DELETE"},
            {"name": "each", "type": "for_each", "items": [], "body": {"type": "email_send"}},
            {"name": "other", "type": "sub_workflow", "workflow": "mail", "version": 2},
            {"name": "help", "type": "agent", "tools": [
                {"type": "node", "name": "tell", "node": {"type": "slack_message"}},
                {"type": "http", "name": "ask", "request": {"method": "HEAD"}},
                {"type": "http", "name": "put", "request": {"method": "PUT"}},
                {"type": "code", "name": "sum"}, {"type": "client", "name": "where"},
                {"type": "workflow", "name": "refund", "workflow": "refund"}, {"type": "mcp", "url": "https://m.example.org"}]},
            {"name": "unknown", "type": "nothing"}, 7]});
        let found: Vec<String> = effects(&graph)
            .into_iter()
            .map(|found| {
                let workflow = found.workflow.map(|workflow| format!(" -> {}", workflow.workflow));
                format!(
                    "{} {} {}{}",
                    found.pointer,
                    found.node,
                    found.effect.as_str(),
                    workflow.unwrap_or_default()
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                "/nodes/0 a pure",
                "/nodes/1 get reads",
                "/nodes/2 post outbound",
                "/nodes/3 read reads",
                "/nodes/4 write outbound",
                "/nodes/5/body each outbound",
                "/nodes/6 other nested -> mail",
                "/nodes/7 help nested",
                "/nodes/7/tools/0/node help.tell outbound",
                "/nodes/7/tools/1 help.ask reads",
                "/nodes/7/tools/2 help.put outbound",
                "/nodes/7/tools/3 help.sum pure",
                "/nodes/7/tools/4 help.where wait",
                "/nodes/7/tools/5 help.refund nested -> refund",
                "/nodes/7/tools/6 help.mcp outbound",
            ]
        );
        assert_eq!(effects(&json!(null)), []);
    }
}
