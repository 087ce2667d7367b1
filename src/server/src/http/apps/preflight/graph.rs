//! Facts about a version's graph.

use std::collections::{BTreeMap, BTreeSet};

use engine::{CollectionUse, Effect, NodeEffect};
use serde_json::{Map, Value};
use store::StoredVersion;
use tokio::task::spawn_blocking;
use uuid::Uuid;
use wire::{CollectionVerb, ErrorCode, FrozenInclude, OutboundNode};

use crate::http::error::{ApiError, ApiResult};

/// The facts about a version.
pub(super) struct Facts {
    pub(super) id: Uuid,
    /// The graph's SHA-256 in hexadecimal.
    pub(super) digest: String,
    pub(super) runnable_config: Option<Map<String, Value>>,
    /// The reason why the graph does not compile.
    pub(super) problem: Option<String>,
    /// Nodes with the credentials that they name.
    pub(super) credentials: Vec<(String, String)>,
    pub(super) nodes: Vec<NodeEffect>,
    /// Collection operations by nodes and tools.
    pub(super) collections: Vec<CollectionUse>,
}

impl Facts {
    /// Analyzes a version on a blocking thread, so that no request waits.
    pub(super) async fn read(stored: StoredVersion) -> ApiResult<Self> {
        let read = move || {
            let graph = stored.graph;
            let compiled = engine::parse(&graph).and_then(|graph| engine::compile(&graph).map(drop));
            let problem = compiled.err().map(|problems| {
                let first =
                    problems.first().map(|problem| format!("{}: {}", problem.pointer, problem.message));
                first.unwrap_or_default()
            });
            let credentials = engine::credentials(&graph).into_iter();
            let credentials = credentials.map(|one| (node_at(&graph, &one.pointer), one.name)).collect();
            Self {
                id: stored.id,
                digest: hex::encode(stored.digest),
                runnable_config: stored.runnable_config,
                problem,
                credentials,
                nodes: engine::effects(&graph),
                collections: engine::collection_uses(&graph),
            }
        };
        spawn_blocking(read).await.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
    }

    /// The version as a release records it.
    pub(super) fn include(&self, workflow: Uuid, version: i32) -> FrozenInclude {
        FrozenInclude {
            workflow_id: workflow.to_string(),
            version,
            version_id: self.id.to_string(),
            digest: self.digest.clone(),
        }
    }

    /// Adds the collection operations.
    pub(super) fn data(&self, found: &mut BTreeMap<String, BTreeSet<CollectionVerb>>) {
        for used in &self.collections {
            if let Some(name) = &used.collection {
                found.entry(name.clone()).or_default().insert(used.verb);
            }
        }
    }

    /// Adds nodes and tools whose type can act outside the service, whatever their fields. Collection writes stay
    /// inside.
    pub(super) fn outbound(&self, workflow: Uuid, version: i32, found: &mut BTreeSet<OutboundNode>) {
        let sends = |kind: &str| {
            let acts = engine::nodes::find(kind).is_ok_and(|kind| kind.effect == Effect::Outbound);
            kind == "mcp" || (acts && kind != "collection_put")
        };
        found.extend(self.nodes.iter().filter(|node| sends(&node.kind)).map(|node| {
            OutboundNode {
                workflow_id: workflow.to_string(),
                version,
                node: node.node.clone(),
                kind: if is_tool(&node.pointer) && node.kind == "http_request" { "http" } else { &node.kind }
                    .to_owned(),
            }
        }));
    }
}

/// Whether a pointer leads to an agent's tool rather than to a node inside it.
fn is_tool(pointer: &str) -> bool {
    let mut names = pointer.rsplit('/');
    names.next().is_some_and(|last| last.parse::<u32>().is_ok()) && names.next() == Some("tools")
}

/// The name of the node that contains the pointer's target.
fn node_at(graph: &Value, pointer: &str) -> String {
    let end = pointer.match_indices('/').nth(2).map_or(pointer.len(), |(end, _)| end);
    let node = pointer.get(..end).and_then(|pointer| graph.pointer(pointer));
    node.and_then(|node| node.get("name")?.as_str()).unwrap_or(pointer).to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_pointer_into_a_node_resolves_to_its_name() {
        let graph = json!({"nodes": [{"name": "a"}, {"name": "ask", "headers": {"x": 1}}]});
        assert_eq!(node_at(&graph, "/nodes/1/headers/x"), "ask");
        assert_eq!(node_at(&graph, "/nodes/0"), "a");
        assert_eq!(node_at(&graph, "/nodes/7/url"), "/nodes/7/url");
        assert_eq!(node_at(&graph, ""), "");
    }

    #[test]
    fn node_types_with_external_effects_are_outbound_with_any_fields() {
        let graph = json!({"nodes": [
            {"name": "say", "type": "template", "template": "x"},
            {"name": "get", "type": "http_request", "url": "https://example.org"},
            {"name": "put", "type": "collection_put", "collection": "notes", "data": {}},
            {"name": "each", "type": "for_each", "items": [], "body": {"type": "email_send"}},
            {"name": "help", "type": "agent", "tools": [
                {"type": "http", "name": "ask", "request": {"method": "GET"}},
                {"type": "node", "name": "call", "node": {"type": "http_request"}},
                {"type": "code", "name": "sum"},
                {"type": "mcp", "url": "https://m.example.org", "allow": ["pay"]}]},
            {"name": "any", "type": "agent", "tools": [{"type": "mcp", "url": "https://m.example.org", "allow": []}]},
            {"name": "open", "type": "agent", "tools": [{"type": "mcp", "url": "https://m.example.org"}]}]});
        let facts = Facts {
            id: Uuid::nil(),
            digest: String::new(),
            runnable_config: None,
            problem: None,
            credentials: Vec::new(),
            nodes: engine::effects(&graph),
            collections: engine::collection_uses(&graph),
        };
        let mut found = BTreeSet::new();
        facts.outbound(Uuid::nil(), 1, &mut found);
        let found: Vec<String> = found.iter().map(|node| format!("{} {}", node.node, node.kind)).collect();
        assert_eq!(
            found,
            [
                "any mcp",
                "each email_send",
                "get http_request",
                "help.ask http",
                "help.call http_request",
                "help.pay mcp",
                "open mcp"
            ]
        );
    }
}
