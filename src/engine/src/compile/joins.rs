//! Detects joins that a choice or `on_error` leaves unmet: some of their sources run, others never do.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use wire::FieldError;

use super::reach::{Link, Reach, is_set, set};
use crate::Problems;
use crate::check::Check;
use crate::graph::Graph;
use crate::graph::parse::read_graph;
use crate::meter;

/// Maximum edge entries that the search visits. The cost grows with choices and joined nodes, times edges.
const WORK: usize = 20_000_000;
/// Maximum sources named in a message.
const NAMED: usize = 5;

/// Reports joins whose sources are on different branches of a choice: they are never met.
pub(super) fn check(graph: &Graph, reach: &Reach, check: &mut Check) {
    let excluded = Joins::new(reach).excluded();
    check.problems.extend(excluded.into_iter().filter_map(|link| {
        let message = format!(
            "waits for {}, which never all run: they are on different branches of a choice",
            names(graph, link)
        );
        report(graph, link, "never_met", message)
    }));
}

/// Returns warnings about joins that some runs cannot meet. Empty if the graph has problems.
#[must_use]
pub fn warnings(document: &Value) -> Problems {
    let mut problems = Problems::new();
    let graph = read_graph(document, &mut problems).filter(|_| problems.is_empty());
    let Some((graph, reach)) = graph.and_then(|graph| Reach::from_graph(&graph).map(|reach| (graph, reach)))
    else {
        return Problems::new();
    };
    let open = Joins::new(&reach).open();
    open.into_iter().filter_map(|open| {
        let (ran, missing) = (name(&graph, open.ran), name(&graph, open.missing));
        let message = format!(
            "may not be met: '{ran}' can run in a run in which '{missing}' does not finish, and then this join leads nowhere"
        );
        report(&graph, open.link, "may_not_be_met", message)
    })
    .collect()
}

fn report(graph: &Graph, link: &Link, code: &'static str, message: String) -> Option<FieldError> {
    let edge = graph.edges.get(link.edge?)?;
    let to = edge.target.names().next().unwrap_or_default();
    let edges =
        link.from.iter().take(2).map(|from| format!(r#"{{"from": "{}", "to": "{to}"}}"#, name(graph, *from)));
    let suggestion = format!("one edge from each: {}", edges.collect::<Vec<_>>().join(", "));
    Some(FieldError::new(format!("{}/from", edge.pointer), code, message).suggest(suggestion))
}

fn name(graph: &Graph, node: usize) -> &str {
    graph.nodes.get(node).map(|node| node.name.as_str()).unwrap_or_default()
}

fn names(graph: &Graph, link: &Link) -> String {
    let named = link.from.iter().take(NAMED).map(|from| format!("'{}'", name(graph, *from)));
    let named = named.collect::<Vec<_>>().join(", ");
    if link.from.len() > NAMED { format!("{named}, …") } else { named }
}

/// A graph's joins.
struct Joins<'a> {
    reach: &'a Reach,
    joins: Vec<&'a Link>,
    /// Incoming links per node.
    into: Vec<Vec<usize>>,
    /// Total entries in all links.
    size: usize,
    /// Entries that may still be visited.
    left: usize,
}

/// A join that a run may leave unmet.
struct Open<'a> {
    link: &'a Link,
    ran: usize,
    missing: usize,
}

impl<'a> Joins<'a> {
    fn new(reach: &'a Reach) -> Self {
        let joins: Vec<&Link> = reach.links.iter().filter(|link| link.from.len() > 1).collect();
        let mut into = vec![Vec::new(); reach.out.len()];
        let mut size = reach.out.len();
        for (index, link) in reach.links.iter().enumerate() {
            size += 1 + link.from.len() + link.to.len();
            for to in &link.to {
                if let Some(into) =
                    into.get_mut(*to).filter(|into: &&mut Vec<usize>| into.last() != Some(&index))
                {
                    into.push(index);
                }
            }
        }
        let left = if joins.is_empty() { 0 } else { WORK };
        Self { reach, joins, into, size, left }
    }

    /// Whether another pass over all links is affordable.
    fn may_go_on(&mut self) -> bool {
        let affordable = self.left >= self.size && meter::step().is_ok();
        self.left = self.left.saturating_sub(self.size);
        affordable
    }

    /// Finds joins whose sources cannot all run, whichever branch of one choice is taken.
    fn excluded(&mut self) -> Vec<&'a Link> {
        let once = self.once();
        let mut excluded = vec![false; self.joins.len()];
        for index in 0..self.reach.links.len() {
            let Some(link) = self.reach.links.get(index) else { continue };
            let branches = branches(link);
            if branches.len() < 2 || !link.from.iter().all(|from| is_set(&once, *from)) {
                continue;
            }
            let mut met = vec![false; self.joins.len()];
            for branch in branches {
                if !self.may_go_on() {
                    return self.marked(&excluded);
                }
                let reached = self.reach.reached_by(|at, to| self.is_on(index, branch, at, to));
                for (met, join) in met.iter_mut().zip(&self.joins) {
                    *met |= join.from.iter().all(|from| is_set(&reached, *from));
                }
            }
            excluded.iter_mut().zip(met).for_each(|(excluded, met)| *excluded |= !met);
        }
        self.marked(&excluded)
    }

    /// Returns the marked joins, except those that lead only to END: no node is lost after them, and the run itself
    /// warns that they were not met.
    fn marked(&self, marks: &[bool]) -> Vec<&'a Link> {
        let joins = self.joins.iter().zip(marks).filter(|(join, marked)| **marked && !join.to.is_empty());
        joins.map(|(join, _)| *join).collect()
    }

    /// Whether link `at` may lead to node `to` in a run that takes this branch of `choice`.
    fn is_on(&self, choice: usize, branch: Branch, at: usize, to: usize) -> bool {
        let (Some(chosen), Some(link)) = (self.reach.links.get(choice), self.reach.links.get(at)) else {
            return true;
        };
        match branch {
            Branch::To(only) => at != choice || Some(to) == only,
            Branch::Failed => link.edge.is_none() || !link.from.iter().any(|from| chosen.from.contains(from)),
            Branch::Succeeded => at != choice,
        }
    }

    /// Marks nodes that run at most once: exactly one link leads to them, from a node that runs at most once.
    fn once(&self) -> Vec<bool> {
        let single = |node: usize| self.into.get(node).is_some_and(|links| links.len() == 1);
        self.reach.reached_by(|_, to| single(to))
    }

    /// Finds joins in which one source can run without another.
    fn open(&mut self) -> Vec<Open<'a>> {
        let mut without: BTreeMap<usize, Option<Vec<bool>>> = BTreeMap::new();
        let mut open = Vec::new();
        for link in self.joins.clone() {
            for missing in link.from.iter().copied() {
                if let Entry::Vacant(vacant) = without.entry(missing) {
                    if !self.may_go_on() {
                        return open;
                    }
                    vacant.insert(self.without(missing));
                }
                let Some(Some(reached)) = without.get(&missing) else { continue };
                if let Some(ran) =
                    link.from.iter().copied().find(|ran| *ran != missing && is_set(reached, *ran))
                {
                    open.push(Open { link, ran, missing });
                    break;
                }
            }
        }
        open
    }

    /// Marks the nodes that can run if `target` does not finish; `None` if it finishes in every run. A target with an
    /// `on_error` path does not finish if it fails; then only that path leads out.
    fn without(&self, target: usize) -> Option<Vec<bool>> {
        let avoiding = Avoiding::new(self, target);
        let fails = |at: usize| {
            let link = self.reach.links.get(at);
            link.is_none_or(|link| link.edge.is_none() || !link.from.contains(&target))
        };
        let leads = |at: usize, to: usize| is_set(&avoiding.nodes, to) && fails(at);
        avoiding.starts.then(|| self.reach.reached_by(leads))
    }
}

/// A path that a run can take at a link.
#[derive(Clone, Copy)]
enum Branch {
    /// The link leads to this node; `None`: to END, or nowhere.
    To(Option<usize>),
    /// The link is an `on_error` path and is taken; the node's edges are not.
    Failed,
    /// The `on_error` path is not taken.
    Succeeded,
}

fn branches(link: &Link) -> Vec<Branch> {
    if link.edge.is_none() {
        return vec![Branch::Failed, Branch::Succeeded];
    }
    let targets: BTreeSet<usize> = link.to.iter().copied().collect();
    let targets = targets.into_iter().map(|to| Branch::To(Some(to)));
    targets.chain(link.ends.then_some(Branch::To(None))).collect()
}

/// Nodes after which a run can end before the target finishes: every outgoing edge can lead past it. A loop counts by
/// its exits.
struct Avoiding<'a> {
    joins: &'a Joins<'a>,
    target: usize,
    nodes: Vec<bool>,
    /// Whether this also holds for START.
    starts: bool,
    /// Per node, outgoing edges that lead to the target on every branch, as known so far.
    holding: Vec<usize>,
    past: Vec<bool>,
    queue: Vec<usize>,
}

impl<'a> Avoiding<'a> {
    fn new(joins: &'a Joins<'a>, target: usize) -> Self {
        let links = &joins.reach.links;
        let mut holding = vec![0; joins.reach.out.len()];
        for from in links.iter().filter(|link| link.edge.is_some()).flat_map(|link| &link.from) {
            if let Some(holding) = holding.get_mut(*from) {
                *holding += 1;
            }
        }
        let nodes = vec![false; holding.len()];
        let last: Vec<usize> = (0..holding.len()).filter(|node| holding.get(*node) == Some(&0)).collect();
        let past = vec![false; links.len()];
        let mut avoiding = Self { joins, target, nodes, starts: false, holding, past, queue: Vec::new() };
        last.into_iter().filter(|node| *node != target).for_each(|node| avoiding.avoid(node));
        for (index, link) in links.iter().enumerate() {
            // A join that waits for the target leads nowhere before it.
            if link.ends || (link.from.len() > 1 && link.from.contains(&target)) {
                avoiding.lead_past(index);
            }
        }
        while let Some(node) = avoiding.queue.pop() {
            joins.into.get(node).into_iter().flatten().for_each(|link| avoiding.lead_past(*link));
        }
        let mut starts = links.iter().zip(&avoiding.past).filter(|(link, _)| link.from.is_empty());
        avoiding.starts = starts.all(|(_, past)| *past);
        avoiding
    }

    fn avoid(&mut self, node: usize) {
        if set(&mut self.nodes, node) {
            self.queue.push(node);
        }
    }

    fn lead_past(&mut self, index: usize) {
        if !set(&mut self.past, index) {
            return;
        }
        let Some(link) = self.joins.reach.links.get(index) else { return };
        for from in &link.from {
            if link.edge.is_none() {
                self.avoid(*from);
                continue;
            }
            let Some(holding) = self.holding.get_mut(*from) else { continue };
            *holding = holding.saturating_sub(1);
            if *holding == 0 && *from != self.target {
                self.avoid(*from);
            }
        }
    }
}
