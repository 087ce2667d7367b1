//! From JSON to a [`Graph`]: the shape only; whether it makes sense is for `compile`.

use std::time::Duration;

use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::fields::Fields;
use crate::graph::{Case, EdgeSpec, Graph, NodeSpec, Target};

const FORMAT: &str = "graph/1";
/// Longest limit of an attempt: a day, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;
/// Members of the format that this version does not execute, so it does not take them either.
const GRAPH_LATER: [&str; 3] = ["inputs", "state", "modules"];
/// Members that every node may have, whatever its type.
pub(crate) const NODE_COMMON: [&str; 4] = ["name", "type", "timeout_seconds", "description"];
const NODE_LATER: [&str; 5] = ["retry", "on_error", "state", "cache_seconds", "on_unknown"];

/// Reads a graph.
///
/// # Errors
/// Every problem of its shape.
pub fn parse(document: &Value) -> Result<Graph, Problems> {
    let mut problems = Vec::new();
    let graph = read_graph(document, &mut problems);
    match graph {
        Some(graph) if problems.is_empty() => Ok(graph),
        _ => Err(problems),
    }
}

/// What can be read of a graph; what cannot is noted and left empty, so that the rest can be checked too.
pub(crate) fn read_graph(document: &Value, problems: &mut Problems) -> Option<Graph> {
    let mut fields = Fields::of("", document, problems)?;
    match fields.text("format", problems) {
        Some(FORMAT) | None => {}
        Some(other) => problems.push(
            FieldError::new("/format", "format", format!("unknown format '{other}'"))
                .suggest(format!("write \"{FORMAT}\"")),
        ),
    }
    fields.refuse_later(&GRAPH_LATER, problems);
    let nodes = list(&mut fields, "nodes", problems);
    let nodes = nodes.filter_map(|(pointer, node)| read_node(pointer, node, problems)).collect();
    let edges = list(&mut fields, "edges", problems);
    let edges = edges.filter_map(|(pointer, edge)| read_edge(pointer, edge, problems)).collect();
    let output = fields.value("output").cloned();
    fields.refuse_others(problems);
    Some(Graph { nodes, edges, output })
}

/// The entries of an array member with their pointers.
fn list<'a>(
    fields: &mut Fields<'a>,
    name: &'static str,
    problems: &mut Problems,
) -> impl Iterator<Item = (String, &'a Value)> + use<'a> {
    let pointer = fields.at(name);
    let entries = match fields.required(name, problems) {
        Some(Value::Array(entries)) => entries.as_slice(),
        Some(_) => {
            problems.push(FieldError::new(pointer.clone(), "type", "must be an array"));
            &[]
        }
        None => &[],
    };
    entries.iter().enumerate().map(move |(index, entry)| (format!("{pointer}/{index}"), entry))
}

fn read_node(pointer: String, node: &Value, problems: &mut Problems) -> Option<NodeSpec> {
    let mut fields = Fields::of(pointer.clone(), node, problems)?;
    let name = fields.text("name", problems);
    if let Some(name) = name {
        check_name(name, fields.at("name"), problems);
    }
    let kind = fields.text("type", problems);
    if kind == Some("") {
        problems.push(FieldError::new(fields.at("type"), "required", "is required"));
    }
    let timeout = fields.number("timeout_seconds", 0.001..=MAX_TIMEOUT, problems);
    let description = fields.optional_text("description", problems).map(str::to_owned);
    fields.refuse_later(&NODE_LATER, problems);
    let mut own = node.as_object()?.clone();
    for common in NODE_COMMON.iter().chain(&NODE_LATER) {
        own.remove(*common);
    }
    Some(NodeSpec {
        name: name.unwrap_or_default().to_owned(),
        kind: kind.unwrap_or_default().to_owned(),
        description,
        timeout: timeout.map(Duration::from_secs_f64),
        fields: own,
        pointer,
    })
}

/// Names stand in templates as `results.<name>`, so they are identifiers.
fn check_name(name: &str, pointer: String, problems: &mut Problems) {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let good = begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64;
    if !good {
        let message = format!("'{name}' is no node name");
        let problem = FieldError::new(pointer, "name", message);
        problems.push(problem.suggest("letters, digits and _, beginning with a letter, at most 64"));
    }
}

fn read_edge(pointer: String, edge: &Value, problems: &mut Problems) -> Option<EdgeSpec> {
    let mut fields = Fields::of(pointer.clone(), edge, problems)?;
    let from = read_from(&mut fields, problems);
    let target = read_target(&mut fields, problems);
    fields.refuse_others(problems);
    Some(EdgeSpec { from, target, pointer })
}

fn read_from(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let names: Option<Vec<String>> = match fields.required("from", problems) {
        None => return Vec::new(),
        Some(Value::String(name)) => Some(vec![name.clone()]),
        Some(Value::Array(names)) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    let names = names.filter(|names| !names.is_empty());
    if names.is_none() {
        let message = "must be the name of a node, START, or a list of names to wait for";
        problems.push(FieldError::new(fields.at("from"), "type", message));
    }
    names.unwrap_or_default()
}

fn read_target(fields: &mut Fields<'_>, problems: &mut Problems) -> Target {
    let to = fields.optional_text("to", problems);
    let cases = match fields.value("cases") {
        Some(Value::Array(cases)) => Some(read_cases(&fields.at("cases"), cases, problems)),
        Some(_) => {
            problems.push(FieldError::new(fields.at("cases"), "type", "must be an array"));
            Some(Vec::new())
        }
        None => None,
    };
    let otherwise = fields.optional_text("else", problems).map(str::to_owned);
    let has_to = fields.value("to").is_some();
    match (has_to, cases.is_some(), fields.value("else").is_some()) {
        (true, true, _) => {
            let message = "an edge has either 'to' or 'cases'";
            problems.push(FieldError::new(fields.at("cases"), "exclusive", message));
        }
        (true, false, true) => {
            let message = "'else' belongs to 'cases', not to 'to'";
            problems.push(FieldError::new(fields.at("else"), "exclusive", message));
        }
        (false, false, _) => {
            problems.push(FieldError::new(fields.at("to"), "required", "an edge needs 'to' or 'cases'"));
        }
        (true, false, false) | (false, true, _) => {}
    }
    match (to, cases) {
        (Some(to), None) => Target::To(to.to_owned()),
        (_, cases) => Target::Cases { cases: cases.unwrap_or_default(), otherwise },
    }
}

fn read_cases(pointer: &str, cases: &[Value], problems: &mut Problems) -> Vec<Case> {
    if cases.is_empty() {
        problems.push(FieldError::new(pointer, "empty", "needs at least one case"));
    }
    let mut read = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        let pointer = format!("{pointer}/{index}");
        let Some(mut case) = Fields::of(pointer.clone(), case, problems) else { continue };
        let when = case.text("when", problems);
        let to = case.text("to", problems);
        case.refuse_others(problems);
        if let (Some(when), Some(to)) = (when, to) {
            read.push(Case { when: when.to_owned(), to: to.to_owned(), pointer });
        }
    }
    read
}
