//! Nodes that run inside another one.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::attempt::Visited;
use super::call::Call;
use super::output::{SlotOutput, StepOutput};
use super::visit::Visit;
use super::{Failure, PlanNode};
use crate::template::overlay;

impl Call<'_> {
    /// Prepares to run `count` nodes inside this one.
    pub(crate) fn nested(&self, count: usize) -> Nested<'_> {
        let earlier = (1..self.attempt).rev().map(|attempt| self.inside_of(attempt)).collect();
        Nested {
            call: self,
            path: self.inside(),
            earlier,
            halt: self.visit.halt.child_token(),
            count,
            tolerated: self.visit.continues_after_failure(),
        }
    }
}

/// Runs a node many times inside another one.
pub(crate) struct Nested<'a> {
    call: &'a Call<'a>,
    path: String,
    /// As `path`, for the earlier attempts, latest first.
    earlier: Vec<String>,
    halt: CancellationToken,
    count: usize,
    tolerated: bool,
}

impl Nested<'_> {
    /// Marks the enclosing node as one that continues after a failure, if `tolerated`.
    pub(crate) fn tolerating(self, tolerated: bool) -> Self {
        Self { tolerated: self.tolerated || tolerated, ..self }
    }

    /// Runs `work` with an output that has one slot per item.
    pub(crate) async fn with_output<T>(&self, work: impl AsyncFnOnce(&StepOutput<'_>) -> T) -> T {
        let slot = SlotOutput { output: self.call.visit.output, slot: self.call.visit.slot };
        let output = StepOutput::new(&slot, self.count);
        let _lent = self.call.visit.env.ports.activity.lent();
        work(&output).await
    }

    /// Runs `node` for one item.
    pub(crate) async fn item(
        &self,
        node: &Arc<PlanNode>,
        index: usize,
        item: &Value,
        output: &StepOutput<'_>,
    ) -> Result<Value, Failure> {
        let names = View::from_pairs([("item", View::from(Serde(item))), ("index", View::from(index))]);
        let _busy = self.call.at_work();
        let visited = self.visit(node, &format!("[{index}]"), names, output, index, false).await;
        output.finish(index).await;
        visited.result
    }

    /// Runs `node` as a part of this one. Its journal name is this node's name followed by `name`. It also sees
    /// `names` and writes to `slot`, which stays open. Its row is durable on return, so that later work may depend on
    /// it.
    pub(crate) async fn inner(
        &self,
        node: &Arc<PlanNode>,
        name: &str,
        names: View,
        output: &StepOutput<'_>,
        slot: usize,
    ) -> Result<Value, Failure> {
        self.durable(node, name, names, output, slot, false).await
    }

    /// As [`Self::inner`], but a failure is a result for this node: its next attempt gets the same one. Writes no
    /// output.
    pub(crate) async fn tool(
        &self,
        node: &Arc<PlanNode>,
        name: &str,
        names: View,
        output: &StepOutput<'_>,
    ) -> Result<Value, Failure> {
        self.durable(node, name, names, output, usize::MAX, true).await
    }

    async fn durable(
        &self,
        node: &Arc<PlanNode>,
        name: &str,
        names: View,
        output: &StepOutput<'_>,
        slot: usize,
        failure_counts: bool,
    ) -> Result<Value, Failure> {
        let _busy = self.call.at_work();
        let visited = self.visit(node, name, names, output, slot, failure_counts).await;
        if let Some(receipt) = visited.receipt {
            receipt.await.map_err(|error| Failure::Lost(error.to_string()))?;
        }
        visited.result
    }

    async fn visit(
        &self,
        node: &Arc<PlanNode>,
        name: &str,
        names: View,
        output: &StepOutput<'_>,
        slot: usize,
        failure_counts: bool,
    ) -> Visited {
        let view =
            if names.is_none() { self.call.visit.view.clone() } else { overlay(self.call.visit.view, names) };
        let visit = Visit {
            env: self.call.visit.env,
            frame: self.call.visit.frame,
            node,
            path: format!("{}{name}", self.path),
            number: 1,
            step: self.call.visit.step,
            halt: &self.halt,
            view: &view,
            heavy: self.call.visit.heavy,
            output,
            slot,
            now: self.call.visit.now,
            earlier: self.earlier.iter().map(|path| format!("{path}{name}")).collect(),
            keeps: self.call.visit.finished.as_ref(),
            failure_counts,
            tolerated: self.tolerated,
            finished: None,
            model_calls: AtomicU32::new(0),
        };
        let path = visit.path.clone();
        let mut visited = visit.run().await;
        if let Err(Failure::Failed(error)) = &mut visited.result {
            error.node.get_or_insert(path);
        }
        visited
    }

    /// Cancels the other items' waits.
    pub(crate) fn halt(&self) {
        // While inputs are filled again nothing waits, and the items that ran next to a failure are needed too.
        if self.call.visit.env.refill.is_none() {
            self.halt.cancel();
        }
    }

    pub(crate) fn is_halted(&self) -> bool {
        self.halt.is_cancelled()
    }
}
