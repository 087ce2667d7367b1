//! From a [`Graph`] to a [`Plan`]: names become indices, types become nodes, everything wrong is said at once.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use wire::FieldError;

use crate::Problems;
use crate::fields::{nearest, not_yet};
use crate::graph::{END, EdgeSpec, Graph, NodeSpec, START, Target};
use crate::nodes::{CATALOGUE, Node, TYPES_LATER, build};
use crate::template::{check_condition, check_template};

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

/// Reads and compiles a graph: what is asked before one is saved.
///
/// # Errors
/// Every problem of its shape and of its meaning, each with a JSON pointer, a code and, where one can tell, what to
/// write instead.
pub fn check(document: &Value) -> Result<Plan, Problems> {
    let mut problems = Vec::new();
    let graph = crate::parse::read_graph(document, &mut problems);
    let plan = graph.map(|graph| plan(&graph, &mut problems));
    match plan {
        Some(plan) if problems.is_empty() => Ok(plan),
        _ => Err(problems),
    }
}

/// Compiles a graph that was read without problems.
///
/// # Errors
/// Every problem, each with a JSON pointer, a code and, where one can tell, what to write instead.
pub fn compile(graph: &Graph) -> Result<Plan, Problems> {
    let mut problems = Vec::new();
    let plan = plan(graph, &mut problems);
    if problems.is_empty() { Ok(plan) } else { Err(problems) }
}

/// The plan, which is whole when nothing was noted.
fn plan(graph: &Graph, problems: &mut Problems) -> Plan {
    let nodes = graph.nodes.iter().filter_map(|node| plan_node(node, problems)).collect();
    let names = index_names(graph, problems);
    let edges: Vec<PlanEdge> =
        graph.edges.iter().filter_map(|edge| plan_edge(edge, &names, problems)).collect();
    check_reach(graph, &names, &edges, problems);
    if let Some(output) = &graph.output {
        check_templates(output, "/output", problems);
    }
    let reads_messages = graph.nodes.iter().any(|node| node.fields.values().any(names_messages))
        || graph.output.as_ref().is_some_and(names_messages)
        || graph.edges.iter().any(|edge| match &edge.target {
            Target::To(_) => false,
            Target::Cases { cases, .. } => cases.iter().any(|case| case.when.contains("messages")),
        });
    Plan { nodes, edges, output: graph.output.clone(), reads_messages }
}

fn plan_node(spec: &NodeSpec, problems: &mut Problems) -> Option<PlanNode> {
    if spec.kind.is_empty() {
        return None;
    }
    let Some(kind) = CATALOGUE.iter().find(|kind| kind.name == spec.kind) else {
        problems.push(no_such_type(spec));
        return None;
    };
    let node = build(kind, &spec.pointer, &spec.fields, problems)?;
    Some(PlanNode { name: spec.name.clone(), timeout: spec.timeout, node })
}

fn no_such_type(spec: &NodeSpec) -> FieldError {
    let pointer = format!("{}/type", spec.pointer);
    let names = CATALOGUE.iter().map(|kind| kind.name);
    let known = format!("known types: {}", names.clone().collect::<Vec<_>>().join(", "));
    if TYPES_LATER.contains(&spec.kind.as_str()) {
        return FieldError::new(pointer, "not_yet", not_yet(&spec.kind)).suggest(known);
    }
    let problem = FieldError::new(pointer, "unknown_type", format!("unknown node type '{}'", spec.kind));
    match nearest(&spec.kind, names.chain(TYPES_LATER)) {
        Some(near) => problem.suggest(format!("did you mean '{near}'?")),
        None => problem.suggest(known),
    }
}

fn index_names<'a>(graph: &'a Graph, problems: &mut Problems) -> BTreeMap<&'a str, usize> {
    let mut names = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let pointer = format!("{}/name", node.pointer);
        if node.name == START || node.name == END {
            problems.push(FieldError::new(pointer, "reserved", format!("'{}' is reserved", node.name)));
        } else if names.contains_key(node.name.as_str()) {
            problems.push(FieldError::new(pointer, "duplicate", format!("'{}' stands twice", node.name)));
        } else if !node.name.is_empty() {
            names.insert(node.name.as_str(), index);
        }
    }
    names
}

fn plan_edge(edge: &EdgeSpec, names: &BTreeMap<&str, usize>, problems: &mut Problems) -> Option<PlanEdge> {
    let starts = edge.from.len() == 1 && edge.from.first().is_some_and(|name| name == START);
    let from = if starts { Some(Vec::new()) } else { sources(edge, names, problems) };
    let mut destination = |name: &str, pointer: String| destination(name, names, pointer, problems);
    let target = match &edge.target {
        Target::To(to) => destination(to, format!("{}/to", edge.pointer)).map(PlanTarget::To),
        Target::Cases { cases, otherwise } => {
            let planned: Vec<_> = cases
                .iter()
                .filter_map(|case| {
                    Some((case.when.clone(), destination(&case.to, format!("{}/to", case.pointer))?))
                })
                .collect();
            let otherwise = otherwise.as_ref().map(|to| destination(to, format!("{}/else", edge.pointer)));
            for case in cases {
                if let Err(message) = check_condition(&case.when) {
                    problems.push(FieldError::new(format!("{}/when", case.pointer), "condition", message));
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

/// The nodes that an edge comes from; `None` when one is not to be found.
fn sources(edge: &EdgeSpec, names: &BTreeMap<&str, usize>, problems: &mut Problems) -> Option<Vec<usize>> {
    let pointer = format!("{}/from", edge.pointer);
    let mut found = Vec::with_capacity(edge.from.len());
    for name in &edge.from {
        let Some(index) = source(name, names, &pointer, problems) else { continue };
        if found.contains(&index) {
            problems.push(FieldError::new(pointer.clone(), "duplicate", format!("'{name}' stands twice")));
        } else {
            found.push(index);
        }
    }
    (!found.is_empty() && found.len() == edge.from.len()).then_some(found)
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

/// Every node must be reachable, every join must be possible, and START must lead somewhere.
fn check_reach(graph: &Graph, names: &BTreeMap<&str, usize>, edges: &[PlanEdge], problems: &mut Problems) {
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
    for (spec, edge) in graph.edges.iter().zip(edges) {
        let (met, missing): (Vec<usize>, Vec<usize>) =
            edge.from.iter().partition(|from| reached.get(**from).copied().unwrap_or(false));
        if let (false, Some(node)) = (met.is_empty(), missing.first().and_then(|from| graph.nodes.get(*from)))
        {
            let message = format!("waits for '{}', which is never reached", node.name);
            problems.push(FieldError::new(format!("{}/from", spec.pointer), "never_met", message));
        }
    }
    for (index, (node, reached)) in graph.nodes.iter().zip(reached).enumerate() {
        // A node without a name of its own cannot be led to.
        if !reached && names.get(node.name.as_str()) == Some(&index) {
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
            if let Err(message) = check_template(text) {
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
