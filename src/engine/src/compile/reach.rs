//! How nodes lead to one another: whether every node can be reached, every join can be met, and START leads somewhere.

use std::collections::{BTreeMap, BTreeSet};

use wire::FieldError;

use super::Check;
use crate::graph::fields::nearest;
use crate::graph::{END, Graph, OnError, START};

/// An edge in indices. No source: START; no target: END.
struct Link {
    edge: Option<usize>,
    from: Vec<usize>,
    to: Vec<usize>,
}

/// Which node leads to which, however directly.
pub(super) struct Reach {
    links: Vec<Link>,
    /// For each node, the links that come out of it.
    out: Vec<Vec<usize>>,
}

impl Reach {
    /// `None` when an edge leads to an unknown place, so that nothing can be said.
    ///
    /// A misspelt name counts as the one that it most likely means: what follows from a slip is not noted again.
    pub(super) fn of(graph: &Graph) -> Option<Self> {
        // Of two nodes with one name the first counts: the later overwrite, so they come first.
        let names: BTreeMap<&str, usize> =
            graph.nodes.iter().enumerate().rev().map(|(index, node)| (node.name.as_str(), index)).collect();
        let meant = |name: &str| -> Option<usize> {
            let known = names.get(name).or_else(|| names.get(nearest(name, names.keys().copied())?));
            known.copied()
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
            links.push(Link { edge: Some(index), from, to });
        }
        for (index, node) in graph.nodes.iter().enumerate() {
            if let OnError::To(to) = &node.common.on_error
                && to != END
            {
                links.push(Link { edge: None, from: vec![index], to: vec![meant(to)?] });
            }
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

    /// Which nodes a run can come to.
    fn reached(&self) -> Vec<bool> {
        let mut reached = vec![false; self.out.len()];
        let mut open: Vec<usize> = Vec::new();
        for link in self.links.iter().filter(|link| link.from.is_empty()) {
            open.extend(link.to.iter().filter(|to| set(&mut reached, **to)));
        }
        while let Some(node) = open.pop() {
            for link in self.out_of(node) {
                if link.from.iter().all(|from| is_set(&reached, *from)) {
                    open.extend(link.to.iter().filter(|to| set(&mut reached, **to)));
                }
            }
        }
        reached
    }

    /// Which nodes may run after this one.
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

/// Says whether it was not set before.
fn set(marks: &mut [bool], index: usize) -> bool {
    marks.get_mut(index).is_some_and(|mark| !std::mem::replace(mark, true))
}

/// Notes what is wrong; says whether nothing is.
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
        // A node without a name of its own cannot be led to.
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
