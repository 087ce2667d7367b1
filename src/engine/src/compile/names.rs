//! Checks that names in templates and conditions are defined where they are used.

use std::collections::BTreeMap;

use wire::FieldError;

use super::reach::{Reach, is_set};
use crate::check::{Check, NameUse, Owner};
use crate::graph::fields::{listed, nearest};
use crate::graph::{Graph, NodeSpec, OnError};
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
/// Template functions besides those in [`crate::template::functions`].
const FUNCTIONS: [&str; 2] = ["range", "dict"];

pub(super) fn check(graph: &Graph, reach: Option<&Reach>, check: &mut Check) {
    // Of two nodes with the same name the first wins: it is inserted last and overwrites the others.
    let places =
        graph.nodes.iter().enumerate().rev().map(|(index, node)| (node.name.as_str(), index)).collect();
    let mut before = Before { places, reach, after: BTreeMap::new() };
    for named in std::mem::take(&mut check.names) {
        check.problems.extend(problem(graph, &mut before, &named));
    }
}

fn problem(graph: &Graph, before: &mut Before<'_>, named: &NameUse) -> Option<FieldError> {
    let mut parts = named.name.split('.');
    let (first, second, third) = (parts.next().unwrap_or_default(), parts.next(), parts.next());
    let note = |code, message, near: Option<&str>, known: String| {
        let problem = FieldError::new(named.pointer.clone(), code, message);
        Some(match near {
            Some(near) => problem.suggest(format!("did you mean '{near}'?")),
            None => problem.suggest(known),
        })
    };
    match (first, second) {
        ("results", Some(node)) => {
            let names = || graph.nodes.iter().map(|node| node.name.as_str());
            let Some(index) = before.places.get(node).copied() else {
                let near = nearest(node, names()).map(|near| format!("results.{near}"));
                let message = format!("unknown node '{node}' in results.{node}");
                return note("unknown_node", message, near.as_deref(), listed("nodes", names()));
            };
            if before.may_have_run(index, &named.owner) {
                let (member, members) = (third?, graph.nodes.get(index).map(members)?);
                if members.is_empty() || members.contains(&member) {
                    return None;
                }
                let near =
                    nearest(member, members.iter().copied()).map(|near| format!("results.{node}.{near}"));
                let message = format!("'{node}' never returns '{member}'");
                return note(
                    "unknown_member",
                    message,
                    near.as_deref(),
                    format!("results.{node} has {}", members.join(", ")),
                );
            }
            let message = format!("results.{node} is not available: '{node}' never runs before this");
            let known =
                format!("add an edge from '{node}' to this node, or use the result of an earlier node");
            note("never_ready", message, None, known)
        }
        ("state", Some(channel)) if !graph.channels.iter().any(|known| known.name == channel) => {
            let near = nearest(channel, graph.channels.iter().map(|known| known.name.as_str()));
            let near = near.map(|near| format!("state.{near}"));
            let known = format!("declare it: \"state\": {{\"{channel}\": {{\"merge\": \"replace\"}}}}");
            note("unknown_channel", format!("unknown channel 'state.{channel}'"), near.as_deref(), known)
        }
        ("run", Some(member)) if !RUN.contains(&member) => {
            let near = nearest(member, RUN).map(|near| format!("run.{near}"));
            let known = format!("run has {}", RUN.join(", "));
            note("unknown_name", format!("unknown name 'run.{member}'"), near.as_deref(), known)
        }
        ("inputs", Some(member)) if graph.forbids_input(member) => {
            let known: Vec<&str> = graph.input_names().collect();
            let near = nearest(member, known.iter().copied()).map(|near| format!("inputs.{near}"));
            let message = format!("unknown input '{member}': the schema of inputs does not allow it");
            note("unknown_input", message, near.as_deref(), format!("inputs has {}", known.join(", ")))
        }
        (name, _) if is_known(name) => None,
        (name, _) if ITEM.contains(&name) && named.locals.items => None,
        (name, _) if ITEM.contains(&name) => {
            let message = format!("'{name}' is only known inside the body of a for_each");
            note("unknown_name", message, None, format!("names here: {}", SCOPE.join(", ")))
        }
        (ARGS, _) if named.locals.args => None,
        (ARGS, _) => {
            let message = "'args' is only known inside the node of an agent's tool".to_owned();
            note("unknown_name", message, None, format!("names here: {}", SCOPE.join(", ")))
        }
        (name, _) => {
            let near = nearest(name, SCOPE.into_iter().chain(functions::FUNCTIONS));
            let known = format!("names here: {}", SCOPE.join(", "));
            note("unknown_name", format!("unknown name '{name}'"), near, known)
        }
    }
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
