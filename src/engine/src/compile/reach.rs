//! Reachability: every node can be reached, every join can be met, and START leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use wire::FieldError;

use super::Check;
use crate::graph::fields::nearest;
use crate::graph::{END, Graph, OnError, START, Target};

/// Maximum names that are compared with all others. Each of them is a problem already.
const MOST_MISSPELT: usize = 20;

/// An edge or an `on_error` path, in indices. No source: START; no target: END.
pub(super) struct Link {
    /// `None` for an `on_error` path.
    pub(super) edge: Option<usize>,
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// Whether it may lead to END, or nowhere because no case holds.
    pub(super) ends: bool,
}

/// Direct and indirect connections between nodes.
pub(super) struct Reach {
    pub(super) links: Vec<Link>,
    /// Outgoing links per node.
    pub(super) out: Vec<Vec<usize>>,
}

impl Reach {
    /// Returns `None` if an edge leads to an unknown target, or if many names are misspelt, because reachability is
    /// then unknown.
    ///
    /// A misspelt name counts as its most likely target, so that one slip causes no further problems.
    pub(super) fn from_graph(graph: &Graph) -> Option<Self> {
        // Of two nodes with the same name the first wins: it is inserted last and overwrites the others.
        let names: BTreeMap<&str, usize> =
            graph.nodes.iter().enumerate().rev().map(|(index, node)| (node.name.as_str(), index)).collect();
        let mut guesses = MOST_MISSPELT;
        let mut meant = |name: &str| -> Option<usize> {
            if let Some(known) = names.get(name) {
                return Some(*known);
            }
            guesses = guesses.checked_sub(1)?;
            names.get(nearest(name, names.keys().copied())?).copied()
        };
        let mut links = Vec::with_capacity(graph.edges.len());
        for (index, edge) in graph.edges.iter().enumerate() {
            let mut from = Vec::with_capacity(edge.from.len());
            let starts = edge.from.len() == 1 && edge.from.first().is_some_and(|name| name == START);
            for name in edge.from.iter().filter(|_| !starts) {
                from.push(meant(name)?);
            }
            let mut to = Vec::new();
            let mut somewhere = false;
            for name in edge.target.names() {
                somewhere = true;
                if name != END {
                    to.push(meant(name)?);
                }
            }
            if (from.is_empty() && !starts) || !somewhere {
                return None;
            }
            let is_open = matches!(&edge.target, Target::Cases { otherwise: None, .. });
            let ends = is_open || edge.target.names().any(|name| name == END);
            links.push(Link { edge: Some(index), from, to, ends });
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            let OnError::To(to) = &node.common.on_error else { continue };
            let ends = to == END;
            let to = if ends { Vec::new() } else { vec![meant(to)?] };
            links.push(Link { edge: None, from: vec![index], to, ends });
        }
        let mut out = vec![Vec::new(); graph.nodes.len()];
        for (index, link) in links.iter().enumerate() {
            for from in &link.from {
                if let Some(out) = out.get_mut(*from) {
                    out.push(index);
                }
            }
        }
        Some(Self { links, out })
    }

    /// Marks the nodes that a run can reach.
    fn reached(&self) -> Vec<bool> {
        self.reached_by(|_, _| true)
    }

    /// Marks the nodes that a run can reach if a link leads to a node only where `leads(link, node)` is true.
    pub(super) fn reached_by(&self, leads: impl Fn(usize, usize) -> bool) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut waits: Vec<usize> = self.links.iter().map(|link| link.from.len()).collect();
        let mut open: Vec<usize> = Vec::new();
        let mut follow = |index: usize, open: &mut Vec<usize>| {
            let targets = self.links.get(index).map(|link| link.to.as_slice()).unwrap_or_default();
            let targets = targets.iter().copied().filter(|to| leads(index, *to));
            open.extend(targets.filter(|to| set(&mut reached, *to)));
        };
        for (index, _) in self.links.iter().enumerate().filter(|(_, link)| link.from.is_empty()) {
            follow(index, &mut open);
        }
        while let Some(node) = open.pop() {
            for index in self.out.get(node).into_iter().flatten() {
                let Some(left) = waits.get_mut(*index) else { continue };
                *left = left.saturating_sub(1);
                if *left == 0 {
                    follow(*index, &mut open);
                }
            }
        }
        reached
    }

    /// Marks the nodes that may run after this one.
    pub(super) fn after(&self, node: usize) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut open = vec![node];
        while let Some(from) = open.pop() {
            for link in self.out_of(from) {
                open.extend(link.to.iter().filter(|to| set(&mut reached, **to)));
            }
        }
        reached
    }

    fn out_of(&self, node: usize) -> impl Iterator<Item = &Link> {
        self.out.get(node).into_iter().flatten().filter_map(|link| self.links.get(*link))
    }
}

pub(super) fn is_set(marks: &[bool], index: usize) -> bool {
    marks.get(index).copied().unwrap_or(false)
}

/// Sets a mark. Returns whether it was unset.
pub(super) fn set(marks: &mut [bool], index: usize) -> bool {
    marks.get_mut(index).is_some_and(|mark| !std::mem::replace(mark, true))
}

/// Reports problems. Returns whether the graph passes.
pub(super) fn check(graph: &Graph, reach: &Reach, check: &mut Check) -> bool {
    let problems = &mut check.problems;
    let before = problems.len();
    if !reach.links.iter().any(|link| link.from.is_empty()) {
        let problem = FieldError::new("/edges", "no_start", "no edge leads out of START");
        problems.push(problem.suggest(r#"{"from": "START", "to": "<the first node>"}"#));
        return false;
    }
    let reached = reach.reached();
    for link in &reach.links {
        let (met, missing): (Vec<usize>, Vec<usize>) =
            link.from.iter().partition(|from| is_set(&reached, **from));
        let waited = missing.first().and_then(|from| graph.nodes.get(*from));
        let edge = link.edge.and_then(|index| graph.edges.get(index));
        if let (false, Some(node), Some(edge)) = (met.is_empty(), waited, edge) {
            let message = format!("waits for '{}', which is never reached", node.name);
            let problem = FieldError::new(format!("{}/from", edge.pointer), "never_met", message);
            problems.push(problem.suggest(format!("add an edge to '{0}', or do not wait for it", node.name)));
        }
    }
    let mut seen = BTreeSet::new();
    for (index, node) in graph.nodes.iter().enumerate() {
        let first = seen.insert(node.name.as_str());
        // Nothing can lead to a node without a unique name.
        if !is_set(&reached, index) && first && !node.name.is_empty() {
            let problem = FieldError::new(
                node.pointer.clone(),
                "unreachable",
                format!("no edge leads to '{}'", node.name),
            );
            problems
                .push(problem.suggest(format!(r#"{{"from": "<a node before it>", "to": "{}"}}"#, node.name)));
        }
    }
    problems.len() == before
}
