//! Finds the secrets that a graph names.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::credentials::{Segment, segments};
use crate::graph::NodeSpec;
use crate::graph::fields::escape;
use crate::meter;
use crate::nodes::CATALOGUE;

/// A secret named in a graph.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialUse {
    /// JSON pointer to the text.
    pub pointer: String,
    /// The credential's name.
    pub name: String,
}

/// Lists every secret that a graph names, in node order, once per text. Invalid graphs are accepted.
#[must_use]
pub fn credentials(graph: &Value) -> Vec<CredentialUse> {
    let mut found = Vec::new();
    texts_with_secrets(graph, &mut |pointer, text| names_of(pointer, text, &mut found));
    found
}

/// Visits every text in which `[[name]]` is a secret, with its JSON pointer, in node order.
pub(crate) fn texts_with_secrets<'a>(graph: &'a Value, visit: &mut dyn FnMut(&str, &'a str)) {
    let nodes = graph.get("nodes").and_then(Value::as_array).into_iter().flatten();
    for (index, node) in nodes.enumerate() {
        of_node(node, &format!("/nodes/{index}"), visit);
    }
}

fn kind(node: &Value) -> Option<&str> {
    node.get("type")?.as_str()
}

fn of_node<'a>(node: &'a Value, pointer: &str, visit: &mut dyn FnMut(&str, &'a str)) {
    if let (Some(kind), Some(members)) = (kind(node), node.as_object()) {
        of_fields(kind, members, pointer, visit);
    }
}

/// Visits a node's fields and its nested nodes.
fn of_fields<'a>(
    kind: &str,
    members: &'a Map<String, Value>,
    pointer: &str,
    visit: &mut dyn FnMut(&str, &'a str),
) {
    let kind_of_node = CATALOGUE.iter().find(|known| known.name == kind);
    for field in kind_of_node.map_or(&[][..], |known| known.secrets) {
        if let Some(value) = members.get(*field) {
            of_value(value, &format!("{pointer}/{field}"), visit);
        }
    }
    match kind {
        "for_each" => {
            if let Some(body) = members.get("body") {
                of_node(body, &format!("{pointer}/body"), visit);
            }
        }
        "agent" => {
            let tools = members.get("tools").and_then(Value::as_array).into_iter().flatten();
            for (index, tool) in tools.enumerate() {
                of_tool(tool, &format!("{pointer}/tools/{index}"), visit);
            }
        }
        _ => {}
    }
}

/// Visits a tool: a node, a short request, or a server.
fn of_tool<'a>(tool: &'a Value, pointer: &str, visit: &mut dyn FnMut(&str, &'a str)) {
    match kind(tool) {
        Some("node") => {
            if let Some(node) = tool.get("node") {
                of_node(node, &format!("{pointer}/node"), visit);
            }
        }
        Some("http") => {
            if let Some(request) = tool.get("request").and_then(Value::as_object) {
                of_fields("http_request", request, &format!("{pointer}/request"), visit);
            }
        }
        Some("mcp") => {
            if let Some(server) = tool.as_object() {
                of_fields("mcp_call", server, pointer, visit);
            }
        }
        _ => {}
    }
}

/// Returns the names of all secrets that nodes use, each once.
pub(crate) fn of_specs(nodes: &[NodeSpec]) -> Vec<String> {
    let mut found = Vec::new();
    for spec in nodes {
        of_fields(&spec.kind, &spec.fields, "", &mut |pointer, text| names_of(pointer, text, &mut found));
    }
    let mut names: Vec<String> = found.into_iter().map(|found| found.name).collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn names_of(pointer: &str, text: &str, found: &mut Vec<CredentialUse>) {
    let mut names = BTreeSet::new();
    for segment in segments(text) {
        let Segment::Secret(name) = segment else { continue };
        if !names.insert(name) {
            continue;
        }
        // A member with a long name gives each of its texts a long pointer.
        if meter::make(pointer.len() + name.len()).is_err() {
            return;
        }
        found.push(CredentialUse { pointer: pointer.to_owned(), name: name.to_owned() });
    }
}

fn of_value<'a>(value: &'a Value, pointer: &str, visit: &mut dyn FnMut(&str, &'a str)) {
    if meter::step().is_err() {
        return;
    }
    match value {
        Value::String(text) => visit(pointer, text),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                of_value(item, &format!("{pointer}/{index}"), visit);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                of_value(member, &format!("{pointer}/{}", escape(name)), visit);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_of_a_graph_are_found_only_in_effective_fields() {
        let graph = json!({"nodes": [
            {"name": "a", "type": "http_request", "url": "https://x.test/[[one]]", "headers": {"A/b": "Bearer [[two]]"},
             "json": {"deep": [{"x": "[[three]]"}]}, "description": "[[none]]", "method": "[[none]]"},
            {"name": "b", "type": "template", "template": "[[none]]"},
            {"name": "c", "type": "for_each", "items": [], "body": {"type": "http_request", "url": "[[four]]"}},
            {"name": "d", "type": "set", "values": {}, "body": {"type": "http_request", "url": "[[none]]"}},
            {"name": "e", "type": "agent", "api_key": "[[five]]", "prompt": "[[none]]", "tools": [
                {"type": "http", "description": "[[none]]", "request": {"url": "[[six]]", "method": "[[none]]"}},
                {"type": "node", "node": {"type": "slack_message", "webhook_url": "[[seven]]", "text": "[[none]]"}},
                {"type": "node", "node": {"type": "for_each", "body": {"type": "http_request", "url": "[[eight]]"}}},
                {"type": "workflow", "workflow": "[[none]]"}, {"type": "mcp", "url": "[[none]]", "headers": {"X-Key": "[[nine]]"}}, 7
            ]},
            7, {"type": 1}
        ]});
        let found: Vec<String> = credentials(&graph)
            .into_iter()
            .map(|found| format!("{} {}", found.pointer, found.name))
            .collect();
        assert_eq!(
            found,
            [
                "/nodes/0/url one",
                "/nodes/0/headers/A~1b two",
                "/nodes/0/json/deep/0/x three",
                "/nodes/2/body/url four",
                "/nodes/4/api_key five",
                "/nodes/4/tools/0/request/url six",
                "/nodes/4/tools/1/node/webhook_url seven",
                "/nodes/4/tools/2/node/body/url eight",
                "/nodes/4/tools/4/headers/X-Key nine"
            ]
        );
        assert_eq!(credentials(&json!(null)), []);
    }

    #[test]
    fn a_secret_counts_once_per_text_and_its_pointers_are_limited() {
        let count = |headers: &Value| {
            credentials(&json!({"nodes": [{"name": "a", "type": "http_request", "headers": headers}]})).len()
        };
        assert_eq!(count(&json!({"a": "[[x]] [[y]] [[x]]", "b": "[[x]]"})), 3);
        let secrets: String = (0..1_000).map(|n| format!("[[a{n}]]")).collect();
        let headers = json!({"k".repeat(1 << 20): secrets});
        let (found, excess) =
            meter::within(std::time::Duration::from_secs(60), || (count(&headers), meter::excess()));
        assert!(found < 30, "{found}");
        assert_eq!(excess, Some(meter::Excess::Bytes));
    }
}
