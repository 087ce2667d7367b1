//! Parses JSON into a [`Graph`]: the structure only. `check` validates the meaning.

use serde_json::Value;
use wire::FieldError;

use super::edge::read_edge;
use super::fields::{Fields, escape};
use super::{Graph, NodeSpec, common, modules};
use crate::Problems;
use crate::channel::{Channel, Rule, kind};

const FORMAT: &str = "graph/1";
/// Maximum nodes, and maximum edges, per graph.
const MOST_ENTRIES: usize = 5_000;
/// Maximum sources and cases in all edges.
const MOST_CONNECTIONS: usize = 20_000;
/// Maximum bytes of the name of a node or channel.
const LONGEST_NAME: usize = 64;
/// Maximum values of all kinds per graph: each may have several problems.
const MOST_VALUES: usize = 250_000;

/// Removes `$schema`, an editor hint that is not part of the graph.
#[must_use]
pub fn without_schema(mut graph: Value) -> Value {
    if let Value::Object(members) = &mut graph {
        members.retain(|name, _| name != "$schema");
    }
    graph
}

/// Reads a graph.
///
/// # Errors
/// Every structural problem.
pub fn parse(document: &Value) -> Result<Graph, Problems> {
    let mut problems = Vec::new();
    let graph = read_graph(document, &mut problems);
    match graph {
        Some(graph) if problems.is_empty() => Ok(graph),
        _ => Err(problems),
    }
}

/// Reads as much as possible of a graph. Unreadable parts are reported and left empty, so that the rest can be
/// checked too.
pub(crate) fn read_graph(document: &Value, problems: &mut Problems) -> Option<Graph> {
    if let Some(problem) = too_large(document) {
        problems.push(problem);
        return None;
    }
    let mut fields = Fields::from_value("", document, problems)?;
    match fields.text("format", problems) {
        Some(FORMAT) | None => {}
        Some(other) => problems.push(
            FieldError::new("/format", "format", format!("unknown format '{other}'"))
                .suggest(format!("write \"{FORMAT}\"")),
        ),
    }
    let modules = modules::read(&mut fields, problems);
    let inputs = fields.value("inputs").cloned();
    let channels = read_channels(&mut fields, problems);
    let nodes = list(&mut fields, "nodes", problems);
    let nodes = nodes.filter_map(|(pointer, node)| read_node(pointer, node, problems)).collect();
    refuse_many_connections(fields.value("edges"), problems);
    let edges = list(&mut fields, "edges", problems);
    let edges = edges.filter_map(|(pointer, edge)| read_edge(pointer, edge, problems)).collect();
    let output = fields.value("output").cloned();
    fields.refuse_others(problems);
    Some(Graph { inputs, channels, modules, nodes, edges, output })
}

fn read_channels(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<Channel> {
    let pointer = fields.at("state");
    let Some(Value::Object(members)) = fields.value("state") else {
        if fields.value("state").is_some() {
            let problem = FieldError::new(pointer, "type", "must be an object");
            problems.push(problem.suggest(r#"{"<channel>": {"merge": "replace"}}"#));
        }
        return Vec::new();
    };
    let mut channels = Vec::with_capacity(members.len());
    for (name, channel) in members {
        let pointer = format!("{pointer}/{}", escape(name));
        check_name("channel", name, pointer.clone(), problems);
        // Otherwise each problem inside would repeat the name.
        if name.len() > LONGEST_NAME {
            continue;
        }
        let Some(mut fields) = Fields::from_value(pointer, channel, problems) else { continue };
        let rule = Rule::read(fields.word("merge", &Rule::NAMES, problems).unwrap_or("replace"));
        let initial = fields.value("initial").cloned().unwrap_or_else(|| rule.empty());
        if !rule.holds(&initial) {
            let message = format!("{} does not match the channel's rule", kind(&initial));
            let problem = FieldError::new(fields.at("initial"), "type", message);
            problems.push(problem.suggest(format!("\"initial\": {}", rule.empty())));
        }
        fields.refuse_others(problems);
        channels.push(Channel { name: name.clone(), rule, initial });
    }
    channels
}

/// Reports a document with too many values, which must not be copied or searched.
pub(crate) fn too_large(document: &Value) -> Option<FieldError> {
    let message = format!("has more than {MOST_VALUES} values");
    (values(document, MOST_VALUES) > MOST_VALUES).then(|| FieldError::new("", "too_large", message))
}

/// Counts a value and all values inside it. Stops a little above `most`.
fn values(value: &Value, most: usize) -> usize {
    let mut count = 1;
    let mut add = |inside: &Value| count += if count > most { 0 } else { values(inside, most - count) };
    match value {
        Value::Array(items) => items.iter().for_each(&mut add),
        Value::Object(members) => members.values().for_each(&mut add),
        _ => {}
    }
    count
}

/// Refuses edges that connect too many nodes: one edge may name any number of sources and cases.
fn refuse_many_connections(edges: Option<&Value>, problems: &mut Problems) {
    let length = |edge: &Value, name| edge.get(name).and_then(Value::as_array).map_or(0, Vec::len);
    let edges = edges.and_then(Value::as_array).into_iter().flatten();
    let connections: usize = edges.map(|edge| length(edge, "from") + length(edge, "cases")).sum();
    if connections > MOST_CONNECTIONS {
        let message = format!("has {connections} sources and cases; a graph has at most {MOST_CONNECTIONS}");
        problems.push(FieldError::new("/edges", "too_many", message));
    }
}

/// Returns an array member's entries with their pointers.
fn list<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    problems: &mut Problems,
) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    let pointer = fields.at(name);
    let entries = match fields.required(name, problems) {
        Some(Value::Array(entries)) if entries.len() > MOST_ENTRIES => {
            let message = format!("has {} entries; a graph has at most {MOST_ENTRIES}", entries.len());
            problems.push(FieldError::new(pointer.clone(), "too_many", message));
            &[]
        }
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(_) => {
            let problem = FieldError::new(pointer.clone(), "type", "must be an array");
            problems.push(problem.suggest(format!("\"{name}\": […]")));
            &[]
        }
        None => &[],
    };
    entries.iter().enumerate().map(move |(index, entry)| (format!("{pointer}/{index}"), entry))
}

/// Reads a node; a `for_each` body is a node without a name.
pub(crate) fn read_node(pointer: String, node: &Value, problems: &mut Problems) -> Option<NodeSpec> {
    let mut fields = Fields::from_value(pointer.clone(), node, problems)?;
    let name = fields.text("name", problems).unwrap_or_default().to_owned();
    if !name.is_empty() || fields.value("name").is_some_and(Value::is_string) {
        check_name("node", &name, fields.at("name"), problems);
    }
    let spec = read_rest(fields, node, name, problems);
    Some(NodeSpec { pointer, ..spec? })
}

/// Reads a nested node, which the enclosing node names; `what` describes it.
pub(crate) fn read_inner(
    pointer: String,
    node: &Value,
    name: &str,
    what: &str,
    problems: &mut Problems,
) -> Option<NodeSpec> {
    let mut fields = Fields::from_value(pointer.clone(), node, problems)?;
    for own in ["name", "state", "on_error"] {
        if fields.value(own).is_some() {
            let message = format!("{what} cannot have '{own}'");
            let problem = FieldError::new(fields.at(own), "unknown_field", message);
            problems.push(problem.suggest(if own == "on_error" {
                r#""on_item_error": "continue" of the for_each"#.to_owned()
            } else {
                format!("put '{own}' next to 'body'")
            }));
        }
    }
    let spec = read_rest(fields, node, name.to_owned(), problems);
    Some(NodeSpec { pointer, ..spec? })
}

fn read_rest(
    mut fields: Fields<'_>,
    node: &Value,
    name: String,
    problems: &mut Problems,
) -> Option<NodeSpec> {
    let kind = fields.text("type", problems);
    if kind == Some("") {
        let problem = FieldError::new(fields.at("type"), "required", "is required");
        problems.push(problem.suggest("add \"type\": …"));
    }
    let description = fields.optional_text("description", problems).map(str::to_owned);
    let common = common::read(&mut fields, problems);
    let mut own = node.as_object()?.clone();
    own.retain(|member, _| !common::NAMES.contains(&member.as_str()));
    let (kind, pointer) = (kind.unwrap_or_default().to_owned(), String::new());
    Some(NodeSpec { name, kind, description, common, fields: own, pointer })
}

/// Templates use names as `results.<name>` and `state.<name>`, so they must be identifiers.
fn check_name(what: &str, name: &str, pointer: String, problems: &mut Problems) {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let good = begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_');
    let good = good && name.len() <= LONGEST_NAME;
    if !good {
        let message = format!("'{name}' is not a valid {what} name");
        let problem = FieldError::new(pointer, "name", message);
        problems.push(problem.suggest("use at most 64 letters, digits and _, beginning with a letter"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_graph_that_is_far_too_large_has_one_problem() {
        let problems_of = |document: Value| -> Vec<String> {
            let problems = parse(&document).unwrap_err().into_iter();
            problems.map(|problem| format!("{} {}", problem.pointer, problem.code)).collect()
        };
        let many = |count: usize| vec![json!({}); count];
        assert_eq!(
            problems_of(json!({"format": FORMAT, "nodes": many(MOST_ENTRIES + 1), "edges": []})),
            ["/nodes too_many"]
        );
        assert_eq!(
            problems_of(json!({"nodes": [{"tools": many(MOST_VALUES)}], "edges": []})),
            [" too_large"]
        );
        assert!(values(&json!([many(1_000), many(1_000)]), 10) < 1_100, "it stops soon");
    }
}
