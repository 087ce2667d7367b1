//! From a [`Graph`] to a [`Plan`]: names become indices, types become nodes, everything wrong is said at once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::fields::nearest;
use crate::graph::{END, Graph, NodeSpec, START, Target};
use crate::nodes::{CATALOGUE, Node, build};
use crate::template::{check, check_condition};

/// A graph that is ready to run.
pub struct Plan {
    pub(crate) nodes: Vec<PlanNode>,
    pub(crate) edges: Vec<PlanEdge>,
    pub(crate) output: Option<Value>,
    reads_messages: bool,
}

impl Plan {
    /// Whether a template names `messages`, so that a thread's history must be loaded.
    #[must_use]
    pub fn reads_messages(&self) -> bool {
        self.reads_messages
    }
}

pub(crate) struct PlanNode {
    pub(crate) name: String,
    pub(crate) timeout: Option<Duration>,
    pub(crate) node: Box<dyn Node>,
}

pub(crate) struct PlanEdge {
    /// Empty: START.
    pub(crate) from: Vec<usize>,
    pub(crate) target: PlanTarget,
}

pub(crate) enum PlanTarget {
    To(Destination),
    Cases { cases: Vec<(String, Destination)>, otherwise: Option<Destination> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Destination {
    Node(usize),
    End,
}

/// Compiles a graph.
///
/// # Errors
/// Every problem, each with a JSON pointer, a code and, where one can tell, what to write instead.
pub fn compile(graph: &Graph) -> Result<Plan, Problems> {
    let mut problems = Vec::new();
    let nodes: Vec<Option<PlanNode>> =
        graph.nodes.iter().map(|node| plan_node(node, &mut problems)).collect();
    let names = index_names(graph, &mut problems);
    let edges: Vec<PlanEdge> =
        graph.edges.iter().filter_map(|edge| plan_edge(edge, &names, &mut problems)).collect();
    check_reach(graph, &edges, &mut problems);
    if let Some(output) = &graph.output {
        check_templates(output, "/output", &mut problems);
    }
    let planned: Vec<PlanNode> = nodes.into_iter().flatten().collect();
    if !problems.is_empty() {
        return Err(problems);
    }
    let reads_messages = graph.nodes.iter().any(|node| node.fields.values().any(names_messages))
        || graph.output.as_ref().is_some_and(names_messages)
        || graph.edges.iter().any(|edge| match &edge.target {
            Target::To(_) => false,
            Target::Cases { cases, .. } => cases.iter().any(|(when, _)| when.contains("messages")),
        });
    Ok(Plan { nodes: planned, edges, output: graph.output.clone(), reads_messages })
}

fn plan_node(spec: &NodeSpec, problems: &mut Problems) -> Option<PlanNode> {
    let Some(kind) = CATALOGUE.iter().find(|kind| kind.name == spec.kind) else {
        let message = format!("unknown node type '{}'", spec.kind);
        let problem = FieldError::new(format!("{}/type", spec.pointer), "unknown_type", message);
        let names = CATALOGUE.iter().map(|kind| kind.name);
        problems.push(match nearest(&spec.kind, names.clone()) {
            Some(near) => problem.suggest(format!("did you mean '{near}'?")),
            None => problem.suggest(format!("known types: {}", names.collect::<Vec<_>>().join(", "))),
        });
        return None;
    };
    let node = build(kind, &spec.pointer, &spec.fields, problems)?;
    Some(PlanNode { name: spec.name.clone(), timeout: spec.timeout, node })
}

fn index_names<'a>(graph: &'a Graph, problems: &mut Problems) -> BTreeMap<&'a str, usize> {
    let mut names = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let pointer = format!("{}/name", node.pointer);
        if node.name == START || node.name == END {
            problems.push(FieldError::new(pointer, "reserved", format!("'{}' is reserved", node.name)));
        } else if names.insert(node.name.as_str(), index).is_some() {
            problems.push(FieldError::new(pointer, "duplicate", format!("'{}' stands twice", node.name)));
        }
    }
    names
}

fn plan_edge(
    edge: &crate::graph::EdgeSpec,
    names: &BTreeMap<&str, usize>,
    problems: &mut Problems,
) -> Option<PlanEdge> {
    let starts = edge.from.len() == 1 && edge.from.first().is_some_and(|name| name == START);
    let from = if starts {
        Some(Vec::new())
    } else {
        let pointer = format!("{}/from", edge.pointer);
        let found: Vec<_> = edge.from.iter().map(|name| source(name, names, &pointer, problems)).collect();
        found.into_iter().collect()
    };
    let mut destination = |name: &str, pointer: String| destination(name, names, pointer, problems);
    let target = match &edge.target {
        Target::To(to) => destination(to, format!("{}/to", edge.pointer)).map(PlanTarget::To),
        Target::Cases { cases, otherwise } => {
            let at = |index: usize| format!("{}/cases/{index}/to", edge.pointer);
            let planned: Vec<_> = cases
                .iter()
                .enumerate()
                .filter_map(|(index, (when, to))| Some((when.clone(), destination(to, at(index))?)))
                .collect();
            let otherwise = otherwise.as_ref().map(|to| destination(to, format!("{}/else", edge.pointer)));
            for (index, (when, _)) in cases.iter().enumerate() {
                if let Err(message) = check_condition(when) {
                    let pointer = format!("{}/cases/{index}/when", edge.pointer);
                    problems.push(FieldError::new(pointer, "condition", message));
                }
            }
            match otherwise {
                Some(None) => None,
                other => Some(PlanTarget::Cases { cases: planned, otherwise: other.flatten() }),
            }
        }
    };
    Some(PlanEdge { from: from?, target: target? })
}

fn source(
    name: &str,
    names: &BTreeMap<&str, usize>,
    pointer: &str,
    problems: &mut Problems,
) -> Option<usize> {
    let found = names.get(name).copied();
    if found.is_none() {
        let message = match name {
            START => "START cannot be waited for together with others".to_owned(),
            END => "nothing leads out of END".to_owned(),
            _ => format!("unknown node '{name}'"),
        };
        problems.push(with_near(FieldError::new(pointer, "unknown_node", message), name, names));
    }
    found
}

fn destination(
    name: &str,
    names: &BTreeMap<&str, usize>,
    pointer: String,
    problems: &mut Problems,
) -> Option<Destination> {
    if name == END {
        return Some(Destination::End);
    }
    let found = names.get(name).copied().map(Destination::Node);
    if found.is_none() {
        let message = if name == START {
            "nothing leads to START".to_owned()
        } else {
            format!("unknown node '{name}'")
        };
        problems.push(with_near(FieldError::new(pointer, "unknown_node", message), name, names));
    }
    found
}

fn with_near(problem: FieldError, name: &str, names: &BTreeMap<&str, usize>) -> FieldError {
    match nearest(name, names.keys().copied()) {
        Some(near) => problem.suggest(format!("did you mean '{near}'?")),
        None => problem,
    }
}

/// Every node must be reachable, and START must lead somewhere.
fn check_reach(graph: &Graph, edges: &[PlanEdge], problems: &mut Problems) {
    if problems.iter().any(|problem| problem.pointer.starts_with("/edges")) {
        return;
    }
    let mut reached = vec![false; graph.nodes.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for edge in edges {
            if edge.from.iter().all(|from| reached.get(*from).copied().unwrap_or(false)) {
                for to in edge.target.nodes() {
                    if let Some(mark) = reached.get_mut(to)
                        && !*mark
                    {
                        *mark = true;
                        changed = true;
                    }
                }
            }
        }
    }
    if !edges.iter().any(|edge| edge.from.is_empty()) {
        let problem = FieldError::new("/edges", "no_start", "no edge leads out of START");
        problems.push(problem.suggest(r#"{"from": "START", "to": "<the first node>"}"#));
        return;
    }
    for (node, reached) in graph.nodes.iter().zip(reached) {
        if !reached {
            let message = format!("nothing leads to '{}'", node.name);
            problems.push(FieldError::new(node.pointer.clone(), "unreachable", message));
        }
    }
}

impl PlanTarget {
    fn nodes(&self) -> impl Iterator<Item = usize> {
        let (one, cases, otherwise) = match self {
            Self::To(to) => (Some(to), [].as_slice(), None),
            Self::Cases { cases, otherwise } => (None, cases.as_slice(), otherwise.as_ref()),
        };
        let all = one.into_iter().chain(cases.iter().map(|(_, to)| to)).chain(otherwise);
        all.filter_map(|to| match to {
            Destination::Node(index) => Some(*index),
            Destination::End => None,
        })
    }
}

fn check_templates(value: &Value, pointer: &str, problems: &mut Problems) {
    match value {
        Value::String(text) => {
            if let Err(message) = check(text) {
                problems.push(FieldError::new(pointer, "template", message));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                check_templates(item, &format!("{pointer}/{index}"), problems);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                check_templates(member, &format!("{pointer}/{}", crate::fields::escape(name)), problems);
            }
        }
        _ => {}
    }
}

fn names_messages(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("messages"),
        Value::Array(items) => items.iter().any(names_messages),
        Value::Object(members) => members.values().any(names_messages),
        _ => false,
    }
}
