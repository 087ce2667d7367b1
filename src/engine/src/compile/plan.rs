//! Converts a [`Graph`] into a [`Plan`]: edges become indices, problems are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;
use wire::FieldError;

use crate::Problems;
use crate::check::{Check, NameUse, Owner};
use crate::execute::{Destination, Plan, PlanEdge, PlanNode, PlanTarget, PromptUse, prompt_named};
use crate::graph::common::state_pointer;
use crate::graph::fields::{listed, nearest};
use crate::graph::{END, EdgeSpec, Graph, NodeSpec, START, Target, modules};
use crate::nodes::plan_body;
use crate::schema;

/// Compiles a graph that was read without problems.
///
/// Checks only the requirements of a run: a version that was accepted once can always run.
///
/// # Errors
/// Every problem, each with a JSON pointer, a code and, where possible, a suggestion.
pub fn compile(graph: &Graph) -> Result<Plan, Problems> {
    let mut check = Check::default();
    let plan = plan(graph, &mut check);
    if check.problems.is_empty() { Ok(plan) } else { Err(check.problems) }
}

/// Builds the plan, which is complete if no problem is recorded.
pub(super) fn plan(graph: &Graph, check: &mut Check) -> Plan {
    check.modules = Arc::new(graph.modules.clone());
    check.scripts = modules::for_language(&graph.modules, sandbox::Language::Javascript);
    let inputs = graph.inputs.as_ref().and_then(|schema| schema::compile(schema, "/inputs", check));
    let declared = graph.channel_names();
    let nodes =
        graph.nodes.iter().filter_map(|spec| plan_node(&declared, spec, check)).map(Arc::new).collect();
    let names = index_names(graph, &mut check.problems);
    check_diversions(graph, &names, &mut check.problems);
    let edges: Vec<PlanEdge> = graph.edges.iter().filter_map(|edge| plan_edge(edge, &names, check)).collect();
    check.set_owner(Owner::Output);
    if let Some(output) = &graph.output {
        check.templates(output, "/output");
    }
    check.refuse_many_names();
    let reads_messages =
        graph.nodes.iter().any(|node| matches!(node.kind.as_str(), "sub_workflow" | "agent"))
            || graph.nodes.iter().any(|node| node.fields.values().any(crate::names_messages))
            || graph
                .nodes
                .iter()
                .any(|node| node.common.state.iter().any(|(_, write)| crate::names_messages(write)))
            || graph.output.as_ref().is_some_and(crate::names_messages)
            || graph.edges.iter().any(|edge| match &edge.target {
                Target::To(_) => false,
                Target::Cases { cases, .. } => cases.iter().any(|case| case.when.contains("messages")),
            });
    let reads_action = check.names.iter().any(|named| {
        let name = named.name.as_str();
        name == "inputs" || name == "inputs.action" || name.starts_with("inputs.action.")
    });
    let prompts_named = check.names.iter().filter_map(prompt_use).collect();
    let (channels, output) = (graph.channels.clone(), graph.output.clone().map(Arc::new));
    let credentials = super::secret_uses::of_specs(&graph.nodes);
    let written_inputs = graph.inputs.clone();
    Plan {
        inputs,
        written_inputs,
        channels,
        nodes,
        edges,
        output,
        reads_messages,
        reads_action,
        prompts_named,
        credentials,
        modules: Arc::clone(&check.modules),
        surveyed: Mutex::default(),
    }
}

/// Fields with model instructions: in `llm` and `agent`, in `classify` and `extract`, in `judge`.
const INSTRUCTIONS: [&str; 3] = ["/system", "/instructions", "/criteria"];

/// Returns the prompt that a template name reads.
fn prompt_use(named: &NameUse) -> Option<PromptUse> {
    let prompt = prompt_named(&named.name)?;
    let node = match &*named.owner {
        Owner::Node(node) => Some(node.clone()),
        Owner::After(_) | Owner::Output => None,
    };
    let instructs = node.is_some() && INSTRUCTIONS.iter().any(|field| named.pointer.ends_with(field));
    Some(PromptUse { node, prompt, instructs })
}

fn plan_node(declared: &BTreeSet<&str>, spec: &NodeSpec, check: &mut Check) -> Option<PlanNode> {
    for (channel, write) in &spec.common.state {
        let pointer = state_pointer(&spec.pointer, channel);
        if !declared.contains(channel.as_str()) {
            let problem =
                FieldError::new(pointer.clone(), "unknown_channel", format!("unknown channel '{channel}'"));
            check.note(match nearest(channel, declared.iter().copied()) {
                Some(near) => problem.suggest(format!("did you mean '{near}'?")),
                None => problem
                    .suggest(format!("declare it: \"state\": {{\"{channel}\": {{\"merge\": \"replace\"}}}}")),
            });
        }
        check.set_owner(Owner::After(vec![spec.name.clone()]));
        check.templates(write, &pointer);
    }
    check.set_owner(Owner::Node(spec.name.clone()));
    plan_body(spec, check)
}

/// Checks that `on_error: {to}` names another node.
fn check_diversions(graph: &Graph, names: &BTreeMap<&str, usize>, problems: &mut Problems) {
    for node in &graph.nodes {
        let crate::graph::OnError::To(to) = &node.common.on_error else { continue };
        let pointer = format!("{}/on_error/to", node.pointer);
        if to == &node.name {
            let problem =
                FieldError::new(pointer, "self", "on_error of a node cannot lead to the node itself");
            problems.push(problem.suggest("\"retry\": {\"max_attempts\": 3}"));
        } else if to != END {
            let _ = destination(to, names, pointer, problems);
        }
    }
}

fn index_names<'a>(graph: &'a Graph, problems: &mut Problems) -> BTreeMap<&'a str, usize> {
    let mut names = BTreeMap::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let pointer = format!("{}/name", node.pointer);
        if node.name == START || node.name == END {
            let problem = FieldError::new(pointer, "reserved", format!("'{}' is reserved", node.name));
            problems.push(problem.suggest(format!("another name, such as '{}_1'", node.name.to_lowercase())));
        } else if names.contains_key(node.name.as_str()) {
            let problem = FieldError::new(pointer, "duplicate", format!("duplicate '{}'", node.name));
            problems.push(problem.suggest(format!("another name, such as '{}_2'", node.name)));
        } else if !node.name.is_empty() {
            names.insert(node.name.as_str(), index);
        }
    }
    names
}

fn plan_edge(edge: &EdgeSpec, names: &BTreeMap<&str, usize>, check: &mut Check) -> Option<PlanEdge> {
    let starts = edge.from.len() == 1 && edge.from.first().is_some_and(|name| name == START);
    let from = if starts { Some(Vec::new()) } else { sources(edge, names, &mut check.problems) };
    check.set_owner(Owner::After(if starts { Vec::new() } else { edge.from.clone() }));
    let mut destination =
        |name: &str, pointer: String| destination(name, names, pointer, &mut check.problems);
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
                check.expression(&case.when, &format!("{}/when", case.pointer), &[]);
            }
            match otherwise {
                Some(None) => None,
                other => Some(PlanTarget::Cases { cases: planned, otherwise: other.flatten() }),
            }
        }
    };
    Some(PlanEdge { from: from?, target: target? })
}

/// Resolves an edge's source nodes; `None` if one is not found.
fn sources(edge: &EdgeSpec, names: &BTreeMap<&str, usize>, problems: &mut Problems) -> Option<Vec<usize>> {
    let pointer = format!("{}/from", edge.pointer);
    let (mut found, mut seen) = (Vec::with_capacity(edge.from.len()), BTreeSet::new());
    for name in &edge.from {
        let Some(index) = source(name, names, &pointer, problems) else { continue };
        if seen.insert(index) {
            found.push(index);
        } else {
            let problem = FieldError::new(pointer.clone(), "duplicate", format!("duplicate '{name}'"));
            problems.push(problem.suggest("name it once"));
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
            START => "START cannot be joined with other nodes".to_owned(),
            END => "END has no outgoing edges".to_owned(),
            _ => format!("unknown node '{name}'"),
        };
        let problem = FieldError::new(pointer, "unknown_node", message);
        problems.push(if name == START {
            problem.suggest(r#"a separate edge: {"from": "START", "to": "<node>"}"#)
        } else {
            with_near(problem, name, names)
        });
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
            "no edge can lead to START".to_owned()
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
        None => problem.suggest(listed("nodes", names.keys().copied())),
    }
}
