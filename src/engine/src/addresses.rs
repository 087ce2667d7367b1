//! Warns about addresses that receive a secret and that a run's caller can choose.

use std::collections::BTreeSet;

use serde_json::Value;
use wire::{FieldError, MOST_PROBLEMS};

use crate::compile::credentials;
use crate::effects::effects;
use crate::template::{names_of_expression, names_of_template};

/// Node and tool fields that hold an address.
const ADDRESSES: [&str; 5] = ["url", "base_url", "webhook_url", "dsn", "request/url"];
/// The contents of a run request.
const CHOSEN: [&str; 2] = ["inputs", "config"];

/// Returns a warning for each node with a secret whose address comes from `inputs` or `config`. Pointers start at the
/// graph.
#[must_use]
pub fn address_warnings(graph: &Value) -> Vec<FieldError> {
    let uses = credentials(graph);
    if uses.is_empty() {
        return Vec::new();
    }
    let nodes: BTreeSet<String> = effects(graph).into_iter().map(|node| node.pointer).collect();
    let mut warned = BTreeSet::new();
    let mut warnings = Vec::new();
    for one in uses {
        let Some(node) = owner(&nodes, &one.pointer) else { continue };
        for field in ADDRESSES {
            let pointer = format!("{node}/{field}");
            let Some(address) = graph.pointer(&pointer).and_then(Value::as_str) else { continue };
            let Some(from) = chosen_by(address) else { continue };
            if warnings.len() < MOST_PROBLEMS && warned.insert(pointer.clone()) {
                warnings.push(warning(pointer, from, &one.name));
            }
        }
    }
    warnings
}

fn warning(pointer: String, from: &str, secret: &str) -> FieldError {
    let message = format!(
        "the address comes from '{from}', so the request that starts a run decides where the secret '{secret}' is sent"
    );
    let hint = "write scheme and host into the graph, or store the address in a credential, too";
    FieldError::new(pointer, "secret_address", message).suggest(hint)
}

/// Finds the innermost node or tool around a text.
fn owner<'a>(nodes: &'a BTreeSet<String>, pointer: &str) -> Option<&'a String> {
    let mut end = pointer.len();
    while let Some(outer) = pointer.get(..end) {
        if let Some(found) = nodes.get(outer) {
            return Some(found);
        }
        end = outer.rfind('/')?;
    }
    None
}

/// Returns the name that fills the host in an address.
fn chosen_by(address: &str) -> Option<&'static str> {
    let host = authority(address);
    // The host may be an expression that fills the whole text, or may end in the middle of a block.
    let names = names_of_template(host).or_else(|_| names_of_template(address));
    let names = names.or_else(|_| names_of_expression(host)).unwrap_or_default();
    CHOSEN.into_iter().find(|chosen| names.iter().any(|name| name.split('.').next() == Some(*chosen)))
}

/// Returns the host part of an address, with its templates: up to the first `/`, `?` or `#` after the scheme. A
/// template or a secret at the beginning may contain the scheme.
fn authority(address: &str) -> &str {
    let mut at = 0;
    let mut has_scheme = false;
    while let Some(rest) = address.get(at..).filter(|rest| !rest.is_empty()) {
        let tag = [("{{", "}}"), ("{%", "%}"), ("{#", "#}"), ("[[", "]]")];
        if let Some((_, end)) = tag.into_iter().find(|(begin, _)| rest.starts_with(begin)) {
            has_scheme |= at == 0;
            at += rest.find(end).map_or(rest.len(), |found| found + end.len());
        } else if rest.starts_with("://") {
            has_scheme = true;
            at += 3;
        } else if has_scheme && rest.starts_with(['/', '?', '#']) {
            return address.get(..at).unwrap_or(address);
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inputs_that_can_set_the_host_of_an_address_are_found() {
        for (address, from) in [
            ("https://api.example.com/orders/{{ inputs.id }}?q={{ config.q }}", None),
            ("https://{{ inputs.host }}/orders", Some("inputs")),
            ("https://api.example.com{{ inputs.path }}", Some("inputs")),
            ("{{ config.endpoint }}", Some("config")),
            ("{{ config['endpoint'] }}/v1/{{ inputs.id }}", Some("config")),
            ("{{ results.find.url }}/v1/{{ inputs.id }}", None),
            ("{{ inputs.scheme }}://example.com", Some("inputs")),
            ("[[base]]/orders/{{ inputs.id }}", None),
            ("[[base]]{{ inputs.rest }}", Some("inputs")),
            ("{% if inputs.eu %}https://eu.example.com{% endif %}/x", Some("inputs")),
            ("postgres://reader:[[password]]@{{ inputs.host }}/orders", Some("inputs")),
            ("https://example.com", None),
            ("{{ 'https://example.com' }}", None),
            ("", None),
        ] {
            assert_eq!(chosen_by(address), from, "{address}");
        }
    }

    #[test]
    fn only_nodes_with_a_secret_are_warned_about() {
        let key = json!({"Authorization": "Bearer [[key]]"});
        let url = "{{ inputs.url }}";
        let graph = json!({"nodes": [
            {"name": "a", "type": "http_request", "url": url, "headers": key},
            {"name": "b", "type": "http_request", "url": url},
            {"name": "c", "type": "llm", "model": "openai/x", "base_url": "{{ config.endpoint }}", "api_key": "[[key]]"},
            {"name": "d", "type": "for_each", "items": [], "body": {"type": "http_request", "url": url, "headers": key}},
            {"name": "e", "type": "agent", "model": "openai/x", "base_url": "{{ config.endpoint }}", "tools": [
                {"type": "http", "name": "get", "request": {"url": url, "headers": key}},
                {"type": "mcp", "url": url, "headers": key},
                {"type": "node", "name": "put", "node": {"type": "http_request", "url": "https://x.example", "headers": key}}]}]});
        let found: Vec<String> = address_warnings(&graph).into_iter().map(|one| one.pointer).collect();
        let expected = [
            "/nodes/0/url",
            "/nodes/2/base_url",
            "/nodes/3/body/url",
            "/nodes/4/tools/0/request/url",
            "/nodes/4/tools/1/url",
        ];
        assert_eq!(found, expected);
        assert_eq!(address_warnings(&json!(null)), []);
    }
}
