//! From JSON to a [`Graph`]: the shape only; whether it makes sense is for `compile`.

use std::time::Duration;

use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::fields::Fields;
use crate::graph::{EdgeSpec, Graph, NodeSpec, Target};

const FORMAT: &str = "graph/1";
/// Longest limit of an attempt: a day, in seconds.
const MAX_TIMEOUT: f64 = 86_400.0;
/// Members of the format that this version does not execute, so it does not take them either.
const GRAPH_LATER: [&str; 3] = ["inputs", "state", "modules"];
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

fn read_graph(document: &Value, problems: &mut Problems) -> Option<Graph> {
    let mut fields = Fields::of("", document, problems)?;
    match fields.text("format", problems) {
        Some(FORMAT) | None => {}
        Some(other) => problems.push(
            FieldError::new("/format", "format", format!("unknown format '{other}'"))
                .suggest(format!("write \"{FORMAT}\"")),
        ),
    }
    refuse_later(&mut fields, &GRAPH_LATER, problems);
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

fn refuse_later(fields: &mut Fields<'_>, later: &[&'static str], problems: &mut Problems) {
    for name in later {
        if fields.value(name).is_some() {
            let message = format!("'{name}' is part of the format, but this version does not execute it yet");
            problems.push(FieldError::new(fields.at(name), "not_yet", message));
        }
    }
}

fn read_node(pointer: String, node: &Value, problems: &mut Problems) -> Option<NodeSpec> {
    let mut fields = Fields::of(pointer.clone(), node, problems)?;
    let name = fields.text("name", problems);
    let kind = fields.text("type", problems);
    let timeout = fields.number("timeout_seconds", 0.001..=MAX_TIMEOUT, problems);
    let description = fields.value("description").and_then(Value::as_str).map(str::to_owned);
    refuse_later(&mut fields, &NODE_LATER, problems);
    let name = name.filter(|name| check_name(name, &fields.at("name"), problems))?;
    let mut own = node.as_object()?.clone();
    for common in ["name", "type", "timeout_seconds", "description"].iter().chain(&NODE_LATER) {
        own.remove(*common);
    }
    Some(NodeSpec {
        name: name.to_owned(),
        kind: kind?.to_owned(),
        description,
        timeout: timeout.map(Duration::from_secs_f64),
        fields: own,
        pointer,
    })
}

/// Names stand in templates as `results.<name>`, so they are identifiers.
fn check_name(name: &str, pointer: &str, problems: &mut Problems) -> bool {
    let mut letters = name.chars();
    let begins = letters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    let good = begins && letters.all(|c| c.is_ascii_alphanumeric() || c == '_') && name.len() <= 64;
    if !good {
        let message = format!("'{name}' is no node name");
        let problem = FieldError::new(pointer, "name", message);
        problems.push(problem.suggest("letters, digits and _, beginning with a letter, at most 64"));
    }
    good
}

fn read_edge(pointer: String, edge: &Value, problems: &mut Problems) -> Option<EdgeSpec> {
    let mut fields = Fields::of(pointer.clone(), edge, problems)?;
    let from = read_from(&mut fields, problems);
    let target = match (fields.value("to"), fields.value("cases")) {
        (Some(Value::String(to)), None) => Some(Target::To(to.clone())),
        (None, Some(Value::Array(cases))) => Some(read_cases(&mut fields, cases, problems)),
        (Some(_), Some(_)) => {
            problems.push(FieldError::new(
                fields.at("cases"),
                "exclusive",
                "an edge has either 'to' or 'cases'",
            ));
            None
        }
        (Some(_), None) => {
            problems.push(FieldError::new(fields.at("to"), "type", "must be the name of a node, or END"));
            None
        }
        (None, Some(_)) => {
            problems.push(FieldError::new(fields.at("cases"), "type", "must be an array"));
            None
        }
        (None, None) => {
            problems.push(FieldError::new(fields.at("to"), "required", "an edge needs 'to' or 'cases'"));
            None
        }
    };
    fields.refuse_others(problems);
    Some(EdgeSpec { from: from?, target: target?, pointer })
}

fn read_from(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<Vec<String>> {
    let names = match fields.required("from", problems)? {
        Value::String(name) => Some(vec![name.clone()]),
        Value::Array(names) => {
            let names: Option<Vec<_>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            names.filter(|names| !names.is_empty())
        }
        _ => None,
    };
    if names.is_none() {
        let message = "must be the name of a node, START, or a list of names to wait for";
        problems.push(FieldError::new(fields.at("from"), "type", message));
    }
    names
}

fn read_cases(fields: &mut Fields<'_>, cases: &[Value], problems: &mut Problems) -> Target {
    let pointer = fields.at("cases");
    let mut read = Vec::with_capacity(cases.len());
    for (index, case) in cases.iter().enumerate() {
        let Some(mut case) = Fields::of(format!("{pointer}/{index}"), case, problems) else { continue };
        let when = case.text("when", problems);
        let to = case.text("to", problems);
        case.refuse_others(problems);
        if let (Some(when), Some(to)) = (when, to) {
            read.push((when.to_owned(), to.to_owned()));
        }
    }
    let otherwise = fields.value("else").and_then(Value::as_str).map(str::to_owned);
    Target::Cases { cases: read, otherwise }
}
