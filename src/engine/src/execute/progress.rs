//! A graph's progress along its edges, and the warning if it ends before a join is met or END is reached.

use std::sync::Arc;

use wire::ErrorCode;

use super::frame::Frame;
use super::{Destination, Plan, PlanEdge, PlanNode, PlanTarget};
use crate::RunError;

/// A graph's progress.
pub(super) struct GraphProgress {
    pub(super) edges: Vec<EdgeProgress>,
    /// Whether an edge or `on_error` reached END.
    pub(super) reached_end: bool,
}

/// An edge's progress.
pub(super) struct EdgeProgress {
    /// Per source, whether it has finished since the edge last fired.
    arrived: Vec<bool>,
    /// Whether all of its sources have ever finished.
    led_on: bool,
    /// Whether a branch has ended at this join since the edge last fired.
    ends_branch: bool,
}

impl EdgeProgress {
    /// Records the sources that finished in a step. Returns whether the edge fires.
    pub(super) fn arrive(&mut self, finished: impl Iterator<Item = bool>) -> bool {
        for (arrived, finished) in self.arrived.iter_mut().zip(finished) {
            *arrived |= finished;
        }
        let leads_on = self.arrived.iter().all(|arrived| *arrived);
        if leads_on {
            self.arrived.fill(false);
            self.led_on = true;
            self.ends_branch = false;
        }
        leads_on
    }

    /// Whether the join was left unmet. After it has fired, a source may finish again and lead elsewhere.
    fn is_unmet(&self) -> bool {
        if self.led_on { self.ends_branch } else { self.arrived.contains(&true) }
    }
}

impl GraphProgress {
    pub(super) fn new(plan: &Plan) -> Self {
        let edge = |edge: &PlanEdge| EdgeProgress {
            arrived: vec![false; edge.from.len()],
            led_on: false,
            ends_branch: false,
        };
        Self { edges: plan.edges.iter().map(edge).collect(), reached_end: false }
    }

    /// Records the joins at which a branch ends. `ends` tells whether a node finished and none of its edges fired.
    pub(super) fn end_branches(&mut self, plan: &Plan, ends: impl Fn(&usize) -> bool) {
        for (edge, progress) in plan.edges.iter().zip(&mut self.edges) {
            progress.ends_branch |= edge.from.iter().any(&ends);
        }
    }

    /// Returns a warning if a join was not met, or if no branch reached END although the graph leads there.
    pub(super) fn warning(&self, plan: &Plan, frame: &Frame, last: &[usize]) -> Option<RunError> {
        let mut edges = plan.edges.iter().zip(&self.edges);
        let (node, message) = match edges.find(|(_, progress)| progress.is_unmet()) {
            Some((edge, progress)) => (target(plan, edge), unmet(plan, edge, progress)),
            None if self.reached_end || !plan.leads_to_end() => return None,
            None => {
                let last = last.first().and_then(|last| plan.nodes.get(*last));
                (last, "no branch of the graph reached END".to_owned())
            }
        };
        let node = node.map(|node| frame.path(&node.name));
        Some(RunError { node, ..RunError::whole(ErrorCode::RunIncomplete, message) })
    }
}

/// Returns the node that an edge always leads to.
fn target<'a>(plan: &'a Plan, edge: &PlanEdge) -> Option<&'a Arc<PlanNode>> {
    match &edge.target {
        PlanTarget::To(Destination::Node(to)) => plan.nodes.get(*to),
        _ => None,
    }
}

fn unmet(plan: &Plan, edge: &PlanEdge, progress: &EdgeProgress) -> String {
    let quoted = |finished: bool| {
        let sources = edge.from.iter().zip(&progress.arrived).filter(|(_, arrived)| **arrived == finished);
        let nodes = sources.filter_map(|(from, _)| plan.nodes.get(*from));
        nodes.map(|node| format!("'{}'", node.name)).collect::<Vec<_>>().join(", ")
    };
    let again = if progress.led_on { " again" } else { "" };
    format!("a join was not met{again}: {} finished, {} did not", quoted(true), quoted(false))
}
