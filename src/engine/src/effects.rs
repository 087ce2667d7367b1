//! Side effects of a graph's nodes, judged by their written fields: a training refuses graphs that would send
//! something.

use serde_json::Value;
use wire::CollectionVerb;

use crate::execute::Effect;
use crate::meter;
use crate::nodes::{self, UPDATE, is_collection_name, tools_of_verb};
use crate::references::{Reference, kind, named};

/// A node in a graph, on its own or nested in another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeEffect {
    /// JSON pointer to it.
    pub pointer: String,
    /// Its name in traces, without numbers: `each` for nodes in a `for_each`, `agent.tool` for tool nodes.
    pub node: String,
    /// Its type; `mcp` for a tool on an agent's server.
    pub kind: String,
    /// Its effect, judged by its written fields: a fixed GET only reads.
    pub effect: Effect,
    /// The workflow that it runs.
    pub workflow: Option<Reference>,
}

/// Lists the effects of all nodes in graph order; skips nodes without a known type.
#[must_use]
pub fn effects(graph: &Value) -> Vec<NodeEffect> {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    let mut found = Vec::new();
    for (index, node) in nodes.enumerate() {
        let name = node.get("name").and_then(Value::as_str).unwrap_or_default();
        of_node(node, &format!("/nodes/{index}"), name, &mut found);
    }
    found
}

/// Lists every workflow that a graph names, in node order. Invalid graphs are accepted.
#[must_use]
pub fn references(graph: &Value) -> Vec<Reference> {
    effects(graph).into_iter().filter_map(|found| found.workflow).collect()
}

/// Adds a node and its nested nodes.
fn of_node(node: &Value, pointer: &str, name: &str, found: &mut Vec<NodeEffect>) {
    let Some(kind) = kind(node).filter(|_| meter::step().is_ok()) else { return };
    if kind == "for_each" {
        // The body's nodes use this node's name.
        let body = node.get("body").unwrap_or(&Value::Null);
        return of_node(body, &format!("{pointer}/body"), name, found);
    }
    let effect = match kind {
        "http_request" if only_asks(node) => Effect::Reads,
        "postgres_query" if node.get("mode").is_none_or(|mode| mode == "read") => Effect::Reads,
        _ => match nodes::find(kind) {
            Ok(kind) => kind.effect,
            Err(_) => return,
        },
    };
    let workflow = (kind == "sub_workflow").then(|| named(node, pointer.to_owned())).flatten();
    if meter::make(pointer.len() + name.len()).is_err() {
        return;
    }
    let (pointer, name, kind) = (pointer.to_owned(), name.to_owned(), kind.to_owned());
    found.push(NodeEffect {
        pointer: pointer.clone(),
        node: name.clone(),
        kind: kind.clone(),
        effect,
        workflow,
    });
    let tools = node.get("tools").and_then(Value::as_array).filter(|_| kind == "agent");
    for (index, tool) in tools.into_iter().flatten().enumerate() {
        of_tool(tool, &format!("{pointer}/tools/{index}"), &name, found);
    }
}

fn of_tool(tool: &Value, pointer: &str, agent: &str, found: &mut Vec<NodeEffect>) {
    if meter::step().is_err() {
        return;
    }
    let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
    let mut add = |node: String, kind: &str, effect, workflow| {
        // The name of the agent is in the names of all its tools.
        if meter::make(pointer.len() + node.len()).is_err() {
            return;
        }
        let (pointer, kind) = (pointer.to_owned(), kind.to_owned());
        found.push(NodeEffect { pointer, node, kind, effect, workflow });
    };
    let own = format!("{agent}.{name}");
    match kind(tool) {
        Some("node") => {
            if let Some(node) = tool.get("node") {
                of_node(node, &format!("{pointer}/node"), &own, found);
            }
        }
        Some("http") => {
            let asks = tool.get("request").is_some_and(only_asks);
            add(own, "http_request", if asks { Effect::Reads } else { Effect::Outbound }, None);
        }
        Some("collection") => {
            let collection = tool.get("collection").and_then(Value::as_str).unwrap_or_default();
            let verbs = tool.get("verbs").and_then(Value::as_array).into_iter().flatten();
            for (name, kind) in verbs.filter_map(Value::as_str).flat_map(tools_of_verb) {
                if let Ok(kind) = nodes::find(kind) {
                    add(format!("{agent}.{name}_{collection}"), kind.name, kind.effect, None);
                }
            }
        }
        Some("code") => add(own, "code", Effect::Pure, None),
        Some("client") => add(own, "client_tool", Effect::Wait, None),
        Some("workflow") => add(own, "sub_workflow", Effect::Nested, named(tool, pointer.to_owned())),
        // Only the server knows its tools: without a list of allowed tools, the agent itself counts as sending.
        Some("mcp") => match tool.get("allow").and_then(Value::as_array) {
            Some(allowed) if !allowed.is_empty() => {
                for tool in allowed.iter().filter_map(Value::as_str) {
                    add(format!("{agent}.{tool}"), "mcp", Effect::Outbound, None);
                }
            }
            _ => add(agent.to_owned(), "mcp", Effect::Outbound, None),
        },
        _ => {}
    }
}

/// A collection used by a node or an agent's tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CollectionUse {
    /// JSON pointer to the node or the tool.
    pub pointer: String,
    /// Its name as in [`NodeEffect::node`].
    pub node: String,
    /// The collection; `None` if the graph does not name it literally.
    pub collection: Option<String>,
    /// The operation on its records.
    pub verb: CollectionVerb,
}

/// Lists every collection use in graph order.
#[must_use]
pub fn collection_uses(graph: &Value) -> Vec<CollectionUse> {
    let uses = effects(graph).into_iter().filter_map(|found| {
        let written = graph.pointer(&found.pointer)?;
        let verb = match found.kind.as_str() {
            "collection_get" | "collection_query" => CollectionVerb::Read,
            // A tool has one entry per verb.
            "collection_put" if kind(written) == Some("collection") => {
                let updates = found.node.rsplit('.').next().is_some_and(|name| name.starts_with(UPDATE));
                if updates { CollectionVerb::Update } else { CollectionVerb::Create }
            }
            "collection_put" if written.get("id").is_some_and(|id| !id.is_null()) => CollectionVerb::Update,
            "collection_put" => CollectionVerb::Create,
            _ => return None,
        };
        let name = written.get("collection").and_then(Value::as_str).filter(|name| is_collection_name(name));
        Some(CollectionUse {
            collection: name.map(str::to_owned),
            pointer: found.pointer,
            node: found.node,
            verb,
        })
    });
    uses.collect()
}

/// Whether the request has a fixed method that changes nothing.
fn only_asks(request: &Value) -> bool {
    request.get("method").is_none_or(|method| method == "GET" || method == "HEAD")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn effects_are_derived_from_the_fields_as_written() {
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
                {"type": "workflow", "name": "refund", "workflow": "refund"}, {"type": "mcp", "url": "https://m.example.org"},
                {"type": "mcp", "url": "https://m.example.org", "allow": ["list", "pay"]},
                {"type": "mcp", "url": "https://m.example.org", "allow": []}]},
            {"name": "deep", "type": "for_each", "items": [], "body": {"type": "agent", "tools": [
                {"type": "node", "name": "many", "node": {"type": "for_each", "items": [], "body": {"type": "agent", "tools": [
                    {"type": "http", "name": "put", "request": {"method": "PUT"}}]}}}]}},
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
                "/nodes/7/tools/6 help outbound",
                "/nodes/7/tools/7 help.list outbound",
                "/nodes/7/tools/7 help.pay outbound",
                "/nodes/7/tools/8 help outbound",
                "/nodes/8/body deep nested",
                "/nodes/8/body/tools/0/node/body deep.many nested",
                "/nodes/8/body/tools/0/node/body/tools/0 deep.many.put outbound",
            ]
        );
        assert_eq!(effects(&json!(null)), []);
    }

    #[test]
    fn collections_inside_loops_and_tools_are_found() {
        let graph = json!({"nodes": [
            {"name": "a", "type": "collection_get", "collection": "likes", "id": "x"},
            {"name": "b", "type": "for_each", "items": [], "body": {"type": "collection_put", "collection": "likes", "data": {}}},
            {"name": "c", "type": "collection_put", "collection": "likes", "id": "x", "version": 1, "data": {}},
            {"name": "d", "type": "collection_query", "collection": "{{ inputs.name }}"},
            {"name": "e", "type": "agent", "tools": [
                {"type": "collection", "collection": "notes", "verbs": ["read", "create", "update"]},
                {"type": "node", "name": "find", "node": {"type": "collection_query", "collection": "likes"}}]},
            {"name": "f", "type": "set", "values": {"collection": "likes"}}]});
        let found: Vec<String> = collection_uses(&graph)
            .into_iter()
            .map(|found| {
                let collection = found.collection.unwrap_or_else(|| "?".to_owned());
                format!("{} {} {collection} {}", found.pointer, found.node, found.verb.as_str())
            })
            .collect();
        assert_eq!(
            found,
            [
                "/nodes/0 a likes read",
                "/nodes/1/body b likes create",
                "/nodes/2 c likes update",
                "/nodes/3 d ? read",
                "/nodes/4/tools/0 e.get_notes notes read",
                "/nodes/4/tools/0 e.query_notes notes read",
                "/nodes/4/tools/0 e.create_notes notes create",
                "/nodes/4/tools/0 e.update_notes notes update",
                "/nodes/4/tools/1/node e.find likes read",
            ]
        );
    }

    #[test]
    fn workflows_inside_loops_and_tools_are_found() {
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
