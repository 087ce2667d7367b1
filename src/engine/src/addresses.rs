//! Warns about addresses that receive a secret and that a run's caller can choose.

use std::cell::OnceCell;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wire::{FieldError, MOST_PROBLEMS};

use crate::compile::CredentialUse;
use crate::effects::effects;
use crate::meter;
use crate::template::{names_of_expression, names_of_template};

/// Node and tool fields that hold an address.
const ADDRESSES: [&str; 5] = ["url", "base_url", "webhook_url", "dsn", "request/url"];
/// Names whose content comes from outside the graph: from the request that starts a run, from a request that repeats it
/// (`state`), or from a model that reads such a request (`args`).
const CHOSEN: [&str; 5] = ["inputs", "config", "messages", "state", "args"];
/// Nodes that pass their fields on as their result. `set` does so member by member.
const PASSING: [&str; 5] = ["template", "transform", "json", "merge", "filter"];

/// Returns a warning for each node with a secret whose address comes from outside the graph. Pointers start at the
/// graph. `uses` are the graph's secrets.
pub(crate) fn address_warnings(graph: &Value, uses: &[CredentialUse]) -> Vec<FieldError> {
    if uses.is_empty() {
        return Vec::new();
    }
    let nodes: BTreeSet<String> = effects(graph).into_iter().map(|node| node.pointer).collect();
    let mut sources = Sources { graph, results: OnceCell::new(), items: BTreeMap::new() };
    let mut seen = BTreeSet::new();
    let mut warnings = Vec::new();
    for one in uses {
        let Some(node) = owner(&nodes, &one.pointer).filter(|node| seen.insert(*node)) else { continue };
        if warnings.len() >= MOST_PROBLEMS || meter::step().is_err() {
            break;
        }
        for field in ADDRESSES {
            let pointer = format!("{node}/{field}");
            let Some(address) = graph.pointer(&pointer).and_then(Value::as_str) else { continue };
            if let Some(from) = sources.origin_for_node(node, &names_of_address(address)) {
                warnings.push(warning(pointer, from, &one.name));
            }
        }
    }
    warnings.truncate(MOST_PROBLEMS);
    warnings
}

fn warning(pointer: String, from: &str, secret: &str) -> FieldError {
    let chooser = match from {
        "state" => "a request that repeats a run",
        "args" => "the model that calls the tool",
        _ => "the request that starts a run",
    };
    let message =
        format!("the address comes from '{from}', so {chooser} decides where the secret '{secret}' is sent");
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

/// Returns the names that fill the host in an address.
fn names_of_address(address: &str) -> BTreeSet<String> {
    let host = authority(address);
    // The host may be an expression that fills the whole text, or may end in the middle of a block.
    let names = names_of_template(host).or_else(|_| names_of_template(address));
    names.or_else(|_| names_of_expression(host)).unwrap_or_default()
}

fn root(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Returns the name from outside the graph, if there is one.
fn chosen(names: &BTreeSet<String>) -> Option<&'static str> {
    CHOSEN.into_iter().find(|chosen| names.iter().any(|name| root(name) == *chosen))
}

/// Adds the names in all texts inside a value.
fn names_of_texts(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if meter::step().is_ok() => {
            names.extend(names_of_template(text).unwrap_or_default());
        }
        Value::Array(items) => items.iter().for_each(|item| names_of_texts(item, names)),
        Value::Object(members) => members.values().for_each(|member| names_of_texts(member, names)),
        _ => {}
    }
}

/// The origins of names, followed through results and items. Each text is parsed once.
struct Sources<'a> {
    graph: &'a Value,
    results: OnceCell<BTreeMap<String, &'static str>>,
    /// By pointer to a `for_each`.
    items: BTreeMap<String, ItemSource>,
}

/// The origin of a `for_each` node's items.
#[derive(Clone, Copy)]
struct ItemSource {
    from: Option<&'static str>,
    /// Whether they come from the item of an outer `for_each`.
    outer: bool,
}

impl Sources<'_> {
    /// Returns the name from outside the graph that one of the names in this node comes from.
    fn origin_for_node(&mut self, node: &str, names: &BTreeSet<String>) -> Option<&'static str> {
        let from = self.global_origin(names);
        from.or_else(|| if has_item(names) { self.item_origin(node) } else { None })
    }

    fn global_origin(&self, names: &BTreeSet<String>) -> Option<&'static str> {
        let results = || self.results.get_or_init(|| chosen_results(self.graph));
        chosen(names).or_else(|| {
            names.iter().flat_map(|name| parts(name)).find_map(|part| results().get(&part).copied())
        })
    }

    fn item_origin(&mut self, node: &str) -> Option<&'static str> {
        let mut at = node;
        while let Some((each, _)) = at.rsplit_once("/body") {
            let source = self.item_source(each);
            if source.from.is_some() || !source.outer {
                return source.from;
            }
            at = each;
        }
        None
    }

    fn item_source(&mut self, each: &str) -> ItemSource {
        if let Some(known) = self.items.get(each) {
            return *known;
        }
        let mut names = BTreeSet::new();
        if let Some(items) = self.graph.pointer(&format!("{each}/items")) {
            names_of_texts(items, &mut names);
        }
        let source = ItemSource { from: self.global_origin(&names), outer: has_item(&names) };
        self.items.insert(each.to_owned(), source);
        source
    }
}

fn has_item(names: &BTreeSet<String>) -> bool {
    names.iter().any(|name| root(name) == "item")
}

/// Returns the keys of the result parts that a name reads. `node.*` is a whole result; `node.` means any part of it.
fn parts(name: &str) -> Vec<String> {
    let mut names = name.split('.');
    match (names.next(), names.next(), names.next()) {
        (Some("results"), Some(node), Some(member)) => vec![format!("{node}.{member}"), format!("{node}.*")],
        (Some("results"), Some(node), None) => vec![format!("{node}.")],
        _ => Vec::new(),
    }
}

/// A part of a result that is filled from these names.
struct FilledPart {
    parts: [String; 2],
    names: BTreeSet<String>,
}

/// Lists the parts of results that come from outside the graph, with the name that they come from.
fn chosen_results(graph: &Value) -> BTreeMap<String, &'static str> {
    let filled = filled_parts(graph);
    let mut readers: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut open = Vec::new();
    for (index, one) in filled.iter().enumerate() {
        if let Some(from) = chosen(&one.names) {
            open.push((index, from));
            continue;
        }
        for part in one.names.iter().flat_map(|name| parts(name)) {
            readers.entry(part).or_default().push(index);
        }
    }
    let mut found = BTreeMap::new();
    while let Some((index, from)) = open.pop() {
        for part in filled.get(index).into_iter().flat_map(|one| &one.parts) {
            if let Entry::Vacant(vacant) = found.entry(part.clone()) {
                vacant.insert(from);
                open.extend(readers.remove(part).into_iter().flatten().map(|reader| (reader, from)));
            }
        }
    }
    found
}

fn filled_parts(graph: &Value) -> Vec<FilledPart> {
    let mut filled = Vec::new();
    for node in graph.get("nodes").and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| node.get(name).and_then(Value::as_str).unwrap_or_default();
        let (name, kind) = (text("name"), text("type"));
        if meter::step().is_err() {
            break;
        }
        if kind == "set" {
            let values = node.get("values").and_then(Value::as_object);
            for (member, value) in values.into_iter().flatten() {
                if meter::make(name.len() + member.len()).is_err() {
                    break;
                }
                let mut names = BTreeSet::new();
                names_of_texts(value, &mut names);
                filled.push(FilledPart { parts: [format!("{name}.{member}"), format!("{name}.")], names });
            }
            continue;
        }
        let body = node.pointer("/body/type").and_then(Value::as_str).unwrap_or_default();
        if PASSING.contains(&kind) || (kind == "for_each" && (body == "set" || PASSING.contains(&body))) {
            let mut names = BTreeSet::new();
            names_of_texts(node, &mut names);
            for expression in [
                text("expression"),
                node.pointer("/body/expression").and_then(Value::as_str).unwrap_or_default(),
            ] {
                names.extend(names_of_expression(expression).unwrap_or_default());
            }
            filled.push(FilledPart { parts: [format!("{name}.*"), format!("{name}.")], names });
        }
    }
    filled
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
            ("https://{{ messages[0].content }}/orders", Some("messages")),
            ("https://{{ state.host }}/orders", Some("state")),
            ("https://{{ args.host }}/orders?q={{ inputs.q }}", Some("args")),
            ("postgres://reader:[[password]]@{{ inputs.host }}/orders", Some("inputs")),
            ("https://example.com", None),
            ("{{ 'https://example.com' }}", None),
            ("", None),
        ] {
            assert_eq!(chosen(&names_of_address(address)), from, "{address}");
        }
    }

    /// Returns the pointer and the origin of each warned address.
    fn warned(graph: &Value) -> Vec<String> {
        let warnings = address_warnings(graph, &crate::compile::credentials(graph));
        let line = |one: FieldError| {
            let from = one.message.split('\'').nth(1).unwrap_or_default().to_owned();
            format!("{} {from}", one.pointer)
        };
        warnings.into_iter().map(line).collect()
    }

    #[test]
    fn results_and_items_are_followed_to_their_origin() {
        let call = |url: &str| json!({"type": "http_request", "url": url, "headers": {"X-Key": "[[key]]"}});
        let each = |items: Value, body: Value| json!({"name": "x", "type": "for_each", "items": items, "body": body});
        let nodes = json!([
            {"name": "s", "type": "set", "values": {"base": "https://example.com", "url": ["{{ inputs.url }}"]}},
            {"name": "t", "type": "template", "template": "{{ results.s.url[0] }}/x"},
            {"name": "u", "type": "transform", "expression": "results.t.text ~ 'y'"},
            {"name": "m", "type": "merge", "inputs": [{"url": "https://example.com"}]},
            {"name": "c", "type": "http_request", "url": "https://example.com/{{ inputs.id }}"},
            call("{{ results.s.base }}"),
            call("{{ results.s.url[0] }}"),
            call("{{ results.t.text }}"),
            call("{{ results.u }}"),
            call("{{ results.m.url }}"),
            call("{{ results.c.json.url }}"),
            each(json!("{{ inputs.urls }}"), call("{{ item.url }}")),
            each(json!(["{{ results.u }}"]), call("{{ item }}")),
            each(json!(["https://example.com"]), call("{{ item }}")),
            {"name": "a", "type": "agent", "tools": [
                {"type": "node", "name": "n", "node": each(json!("{{ args.urls }}"), call("{{ item }}"))}]},
        ]);
        let expected = [
            "/nodes/6/url inputs",
            "/nodes/7/url inputs",
            "/nodes/8/url inputs",
            "/nodes/11/body/url inputs",
            "/nodes/12/body/url inputs",
            "/nodes/14/tools/0/node/body/url args",
        ];
        assert_eq!(warned(&json!({"nodes": nodes})), expected);
    }

    #[test]
    fn results_that_read_each_other_end() {
        let set = |name: &str, from: &str| json!({"name": name, "type": "set", "values": {"v": from}});
        let nodes = json!([set("a", "{{ results.b.v }}"), set("b", "{{ results.a.v }}"), set("c", "{{ results.c }}"),
            {"type": "http_request", "url": "{{ results.a.v }}{{ results.c.v }}", "headers": {"X-Key": "[[key]]"}}]);
        assert_eq!(warned(&json!({"nodes": nodes})), Vec::<String>::new());
        let chain = (0..2_000).map(|n| set(&format!("n{n}"), &format!("{{{{ results.n{}.v }}}}", n + 1)));
        let mut nodes: Vec<Value> = chain.collect();
        nodes.push(set("n2000", "{{ config.url }}"));
        nodes.push(
            json!({"type": "http_request", "url": "{{ results.n0.v }}", "headers": {"X-Key": "[[key]]"}}),
        );
        assert_eq!(warned(&json!({"nodes": nodes})), ["/nodes/2001/url config"]);
    }

    #[test]
    fn an_address_is_parsed_once_per_node() {
        let secrets: String = (0..20_000).map(|n| format!("[[a{n}]]")).collect();
        let url = format!("https://{}example.com", "{{ results.a.b }}".repeat(10_000));
        let graph = json!({"nodes": [{"type": "http_request", "url": url, "body": secrets}]});
        let clock = kernel::SystemClock::new();
        assert_eq!(warned(&graph), Vec::<String>::new());
        let took = kernel::Clock::monotonic(&clock);
        assert!(took < std::time::Duration::from_secs(10), "{took:?}");
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
        let expected = [
            "/nodes/0/url inputs",
            "/nodes/2/base_url config",
            "/nodes/3/body/url inputs",
            "/nodes/4/tools/0/request/url inputs",
            "/nodes/4/tools/1/url inputs",
        ];
        assert_eq!(warned(&graph), expected);
        assert_eq!(warned(&json!(null)), Vec::<String>::new());
    }
}
