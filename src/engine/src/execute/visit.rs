//! The data of one visit to a node.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use chrono::{DateTime, Utc};
use minijinja::Value as View;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::PlanNode;
use super::frame::{Env, Frame};
use super::output::StepOutput;
use super::recorded::RecordedStep;
use crate::graph::OnError;

/// Finished rows inside a visit's attempts, by journal name.
pub(super) type Finished = Mutex<HashMap<String, RecordedStep>>;

/// One visit to a node by a graph or by an enclosing node.
pub(super) struct Visit<'a> {
    pub(super) env: &'a Env<'a>,
    pub(super) frame: &'a Frame,
    pub(super) node: &'a Arc<PlanNode>,
    /// The node's name in the journal.
    pub(super) path: String,
    /// The number of this visit to the node, from 1.
    pub(super) number: u32,
    /// The outermost graph's super-step.
    pub(super) step: u32,
    pub(super) halt: &'a CancellationToken,
    pub(super) view: &'a View,
    /// Whether the scope is so large that templates are filled outside the actors.
    pub(super) heavy: bool,
    pub(super) output: &'a StepOutput<'a>,
    pub(super) slot: usize,
    /// The value of `now()` in its templates.
    pub(super) now: DateTime<Utc>,
    /// Its journal names in earlier attempts of the enclosing node, latest first.
    pub(super) earlier: Vec<String>,
    /// Keeps its result for the enclosing node's next attempt.
    pub(super) keeps: Option<&'a Finished>,
    /// Whether the enclosing node treats a failure as a result, as a model does with a failed tool.
    pub(super) failure_counts: bool,
    /// Whether the enclosing graph or node continues if it fails.
    pub(super) tolerated: bool,
    /// Results finished inside its attempts so far; `None` if it has only one attempt.
    pub(super) finished: Option<Finished>,
    /// Model calls so far.
    pub(super) model_calls: AtomicU32,
}

impl Visit<'_> {
    /// Whether the run continues if this node fails.
    pub(super) fn continues_after_failure(&self) -> bool {
        self.tolerated || self.failure_counts || self.node.common.on_error != OnError::Fail
    }
}
