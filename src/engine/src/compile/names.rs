//! Checks that names in templates and conditions are defined where they are used.

use std::collections::{BTreeMap, BTreeSet};

use wire::FieldError;

use super::reach::{Reach, is_set};
use crate::check::{Check, NameUse, Owner};
use crate::graph::fields::{listed, nearest};
use crate::graph::{Graph, NodeSpec, OnError};
use crate::meter;
use crate::nodes::CATALOGUE;
use crate::template::functions;

/// Names visible in every template.
const SCOPE: [&str; 6] = ["inputs", "results", "messages", "state", "config", "run"];
/// Names also visible in a `for_each` body.
const ITEM: [&str; 2] = ["item", "index"];
/// Name also visible in a tool's node.
const ARGS: &str = "args";
/// Members of `run`.
const RUN: [&str; 4] = ["id", "workflow_id", "thread_id", "trigger"];
/// Names that are checked as one operation.
const BLOCK: usize = 16;
/// Template functions besides those in [`crate::template::functions`].
const FUNCTIONS: [&str; 2] = ["range", "dict"];

pub(super) fn check(graph: &Graph, reach: Option<&Reach>, check: &mut Check) {
    // Of two nodes with the same name the first wins: it is inserted last and overwrites the others.
    let places =
        graph.nodes.iter().enumerate().rev().map(|(index, node)| (node.name.as_str(), index)).collect();
    let mut before = Before { places, reach, after: BTreeMap::new() };
    let channels = graph.channel_names();
    for (index, named) in std::mem::take(&mut check.names).iter().enumerate() {
        if check.has_many_problems() || (index % BLOCK == 0 && meter::step().is_err()) {
            break;
        }
        if let Some(problem) = problem(graph, &channels, &mut before, named) {
            check.note(problem);
        }
    }
}

fn problem(
    graph: &Graph,
    channels: &BTreeSet<&str>,
    before: &mut Before<'_>,
    named: &NameUse,
) -> Option<FieldError> {
    let mut parts = named.name.split('.');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let names_here = || format!("names here: {}", SCOPE.join(", "));
    let (code, message, near, known) = match (first, second) {
        ("results", Some(node)) => return result_problem(graph, before, named, node, third),
        ("state", Some(channel)) if !channels.contains(channel) => {
            let near = nearest(channel, channels.iter().copied());
            let near = near.map(|near| format!("state.{near}"));
            let known = format!("declare it: \"state\": {{\"{channel}\": {{\"merge\": \"replace\"}}}}");
            ("unknown_channel", format!("unknown channel 'state.{channel}'"), near, known)
        }
        ("run", Some(member)) if !RUN.contains(&member) => {
            let near = nearest(member, RUN).map(|near| format!("run.{near}"));
            let known = format!("run has {}", RUN.join(", "));
            ("unknown_name", format!("unknown name 'run.{member}'"), near, known)
        }
        ("inputs", Some(member)) if graph.forbids_input(member) => {
            let near = nearest(member, graph.input_names()).map(|near| format!("inputs.{near}"));
            let message = format!("unknown input '{member}': the schema of inputs does not allow it");
            ("unknown_input", message, near, listed("inputs", graph.input_names()))
        }
        (name, _) if is_known(name) => return None,
        (name, _) if ITEM.contains(&name) && named.locals.items => return None,
        (name, _) if ITEM.contains(&name) => {
            let message = format!("'{name}' is only known inside the body of a for_each");
            ("unknown_name", message, None, names_here())
        }
        (ARGS, _) if named.locals.args => return None,
        (ARGS, _) => {
            let message = "'args' is only known inside the node of an agent's tool".to_owned();
            ("unknown_name", message, None, names_here())
        }
        (name, _) => {
            let near = nearest(name, SCOPE.into_iter().chain(functions::FUNCTIONS)).map(str::to_owned);
            ("unknown_name", format!("unknown name '{name}'"), near, names_here())
        }
    };
    Some(name_problem(named, code, message, near, known))
}

/// Checks a node's result, or a member of it.
fn result_problem(
    graph: &Graph,
    before: &mut Before<'_>,
    named: &NameUse,
    node: &str,
    member: Option<&str>,
) -> Option<FieldError> {
    let names = || graph.nodes.iter().map(|node| node.name.as_str());
    let Some(index) = before.places.get(node).copied() else {
        let near = nearest(node, names()).map(|near| format!("results.{near}"));
        let message = format!("unknown node '{node}' in results.{node}");
        return Some(name_problem(named, "unknown_node", message, near, listed("nodes", names())));
    };
    if !before.may_have_run(index, &named.owner) {
        let message = format!("results.{node} is not available: '{node}' never runs before this");
        let known = format!("add an edge from '{node}' to this node, or use the result of an earlier node");
        return Some(name_problem(named, "never_ready", message, None, known));
    }
    let (member, members) = (member?, graph.nodes.get(index).map(members)?);
    if members.is_empty() || members.contains(&member) {
        return None;
    }
    let near = nearest(member, members.iter().copied()).map(|near| format!("results.{node}.{near}"));
    let message = format!("'{node}' never returns '{member}'");
    let known = format!("results.{node} has {}", members.join(", "));
    Some(name_problem(named, "unknown_member", message, near, known))
}

/// Builds a problem with a name. Suggests `near`, or else the hint `known`.
fn name_problem(
    named: &NameUse,
    code: &str,
    message: String,
    near: Option<String>,
    known: String,
) -> FieldError {
    let problem = FieldError::new(&*named.pointer, code, message);
    problem.suggest(near.map_or(known, |near| format!("did you mean '{near}'?")))
}

/// Members that a node's result may have; empty if it may have any.
fn members(node: &NodeSpec) -> Vec<&'static str> {
    let kind = CATALOGUE.iter().find(|kind| kind.name == node.kind);
    let mut members = kind.map(|kind| kind.members.to_vec()).unwrap_or_default();
    if !members.is_empty() && node.common.on_error != OnError::Fail {
        members.push("error");
    }
    members
}

fn is_known(name: &str) -> bool {
    [&SCOPE[..], &FUNCTIONS, &functions::FUNCTIONS].iter().any(|names| names.contains(&name))
}

/// The order in which nodes can run.
struct Before<'a> {
    places: BTreeMap<&'a str, usize>,
    reach: Option<&'a Reach>,
    after: BTreeMap<usize, Vec<bool>>,
}

impl Before<'_> {
    fn may_have_run(&mut self, node: usize, owner: &Owner) -> bool {
        let Some(reach) = self.reach else { return true };
        let after = self.after.entry(node).or_insert_with(|| reach.after(node));
        let position = |name: &String| self.places.get(name.as_str()).copied();
        match owner {
            Owner::Output => true,
            Owner::Node(name) => position(name).is_none_or(|index| is_set(after, index)),
            Owner::After(names) => names
                .iter()
                .any(|name| position(name).is_none_or(|index| index == node || is_set(after, index))),
        }
    }
}
