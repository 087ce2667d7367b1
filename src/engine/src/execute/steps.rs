//! The super-steps of one graph.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use minijinja::Value as View;
use sandbox::Sandbox;
use serde_json::{Map, Value};
use tokio::sync::Semaphore;
use wire::ErrorCode;

use super::aside::filled;
use super::attempt::{Receipt, Visited};
use super::frame::{Env, Frame, lost};
use super::output::{SlotOutput, StepOutput};
use super::progress::GraphProgress;
use super::scope::Scope;
use super::visit::Visit;
use super::{Completed, Destination, Failure, GraphStop, PlanNode, PlanTarget};
use crate::graph::{END, OnError};
use crate::template::functions::ids::{self, Numbering};
use crate::template::{fill, holds};
use crate::{NodeError, Plan, RunError};

/// Runs one graph to its end and returns its output; its text goes to slot `slot` in `output`.
pub(super) fn run<'a>(
    env: &'a Env<'a>,
    plan: &'a Plan,
    frame: &'a Frame,
    output: &'a StepOutput<'a>,
    slot: usize,
) -> BoxFuture<'a, Result<Completed, GraphStop>> {
    async move {
        let problems = plan.check_inputs(frame.inputs());
        if let Some(first) = problems.first() {
            let message = format!("inputs{}: {}", first.pointer, first.message);
            return Err(GraphStop::Failed(RunError::whole(ErrorCode::RunInputsInvalid, message)));
        }
        env.learn_again(plan).await;
        let limit = frame.recursion_limit()?;
        let concurrency = usize::try_from(frame.max_concurrency()?).unwrap_or(1);
        let mut run = Execution {
            env,
            plan,
            frame,
            into: SlotOutput { output, slot },
            scope: Scope::new(plan, frame),
            visits: vec![0; plan.nodes.len()],
            progress: GraphProgress::new(plan),
            ended_with: Vec::new(),
            places: Semaphore::new(concurrency),
        };
        run.finish(limit).await
    }
    .boxed()
}

struct Execution<'a> {
    env: &'a Env<'a>,
    plan: &'a Plan,
    frame: &'a Frame,
    into: SlotOutput<'a>,
    scope: Scope,
    visits: Vec<u32>,
    progress: GraphProgress,
    /// Nodes whose edge reached END.
    ended_with: Vec<usize>,
    places: Semaphore,
}

/// One node's result in a step.
struct Done {
    index: usize,
    visited: Visited,
}

/// The result of a step.
struct SuperStepResult {
    receipts: Vec<Receipt>,
    /// Failed nodes that lead elsewhere by `on_error`.
    diverted: BTreeMap<usize, Destination>,
}

impl Execution<'_> {
    async fn finish(&mut self, limit: u32) -> Result<Completed, GraphStop> {
        let mut due = self.after_start().await?;
        let mut last = Vec::new();
        let mut number = 0;
        let mut receipts: Vec<Receipt> = Vec::new();
        while !due.is_empty() {
            number += 1;
            if number > limit {
                let message = format!("the run has not ended after {limit} steps");
                return Err(GraphStop::Failed(RunError::whole(ErrorCode::RunRecursionLimit, message)));
            }
            for receipt in receipts.drain(..) {
                receipt.await.map_err(|error| lost(&error))?;
            }
            self.patch(number)?;
            self.begin_life(number);
            let step = self.step(self.frame.step.unwrap_or(number), &due).await?;
            receipts = step.receipts;
            let next = self.after(&due, &step.diverted).await?;
            last = std::mem::replace(&mut due, next);
        }
        let output = self.output().await?;
        Ok(Completed { output, warning: self.progress.warning(self.plan, self.frame, &last) })
    }

    /// Prepares a step from which this run continues another run's steps: moves the outermost graph's clock forward
    /// and reads the thread as of then.
    fn begin_life(&mut self, number: u32) {
        let input = &self.frame.input;
        for life in input.lives.iter().filter(|life| self.frame.step.is_none() && life.step == number) {
            self.scope.ended(life.accepted_at);
            if number > 1 && input.lives.iter().any(|life| life.messages.is_some()) {
                self.scope.set_messages(input.messages_at(number));
            }
        }
    }

    /// Applies the state changes due before this super-step of the outermost graph.
    fn patch(&mut self, number: u32) -> Result<(), GraphStop> {
        let patch = self.frame.input.patch.as_ref().filter(|patch| patch.step == number);
        let Some(patch) = patch else { return Ok(()) };
        for (channel, value) in &patch.state {
            let set = self.scope.set(channel, value.clone());
            set.map_err(|error| GraphStop::Failed(RunError::whole(error.code, error.message)))?;
        }
        Ok(())
    }

    /// Runs the due nodes and adds their results to the scope.
    async fn step(&mut self, step: u32, due: &[usize]) -> Result<SuperStepResult, GraphStop> {
        for index in due {
            if let Some(visits) = self.visits.get_mut(*index) {
                *visits += 1;
            }
        }
        let done = self.visit_all(step, due).await;
        let mut receipts = Vec::new();
        let mut diverted = BTreeMap::new();
        let mut writes = Vec::new();
        let mut halted = false;
        for at in done.iter().filter_map(|done| done.visited.ended_at) {
            self.scope.ended(at);
        }
        for Done { index, visited } in done {
            receipts.extend(visited.receipt);
            let Some(node) = self.plan.nodes.get(index) else { continue };
            match visited.result {
                Ok(result) => {
                    self.scope.insert(&node.name, &result);
                    writes.push(Arc::clone(node));
                }
                Err(Failure::Halted) => halted = true,
                Err(Failure::Lost(text)) => {
                    return Err(GraphStop::Failed(RunError::whole(ErrorCode::Internal, text)));
                }
                Err(Failure::Failed(error)) => match &node.common.on_error {
                    OnError::Fail => return Err(self.failed_at(node, error)),
                    OnError::Continue => self.scope.insert(&node.name, &error.as_result()),
                    OnError::To(to) => {
                        self.scope.insert(&node.name, &error.as_result());
                        diverted.extend(self.destination(to).map(|to| (index, to)));
                    }
                },
            }
        }
        if halted {
            return Err(GraphStop::Halted);
        }
        for node in writes {
            self.write_state(&node, step).await?;
        }
        Ok(SuperStepResult { receipts, diverted })
    }

    /// Visits every due node. Returns the results in file order, regardless of completion order.
    async fn visit_all(&self, step: u32, due: &[usize]) -> Vec<Done> {
        let view = self.scope.view();
        let streams = |index: &usize| self.plan.nodes.get(*index).is_some_and(|node| node.node.streams());
        let streaming: Vec<usize> = due.iter().copied().filter(streams).collect();
        let output = StepOutput::new(&self.into, streaming.len());
        let mut running: FuturesUnordered<_> = due
            .iter()
            .filter_map(|index| Some((*index, self.plan.nodes.get(*index)?)))
            .map(|(index, node)| {
                let slot = streaming.iter().position(|streaming| *streaming == index);
                self.visit(step, index, node, slot.unwrap_or(usize::MAX), &view, &output)
            })
            .collect();
        let mut done = Vec::with_capacity(due.len());
        let lent = self.env.ports.activity.lent();
        while let Some(one) = running.next().await {
            let node = self.plan.nodes.get(one.index);
            let fails = match &one.visited.result {
                Ok(_) | Err(Failure::Halted) => false,
                Err(Failure::Failed(_)) => node.is_some_and(|node| node.common.on_error == OnError::Fail),
                Err(Failure::Lost(_)) => true,
            };
            if fails && self.env.refill.is_none() {
                // The run fails. Working nodes finish; pending waits are cancelled.
                self.frame.halt.cancel();
            }
            done.push(one);
        }
        drop((running, lent));
        done.sort_by_key(|done| done.index);
        done
    }

    async fn visit(
        &self,
        step: u32,
        index: usize,
        node: &Arc<PlanNode>,
        slot: usize,
        view: &View,
        output: &StepOutput<'_>,
    ) -> Done {
        let place = tokio::select! {
            biased;
            () = self.frame.halt.cancelled() => None,
            place = self.places.acquire() => place.ok(),
        };
        let _busy = self.env.ports.activity.busy();
        let visited = match place {
            Some(_place) => {
                let visit = Visit {
                    env: self.env,
                    frame: self.frame,
                    node,
                    path: self.frame.path(&node.name),
                    number: self.visits.get(index).copied().unwrap_or_default(),
                    step,
                    halt: &self.frame.halt,
                    view,
                    heavy: self.scope.is_heavy(),
                    output,
                    slot,
                    now: self.scope.now(),
                    earlier: Vec::new(),
                    keeps: None,
                    failure_counts: false,
                    tolerated: self.frame.tolerated,
                    finished: None,
                    model_calls: AtomicU32::new(0),
                };
                visit.run().await
            }
            None => Visited { result: Err(Failure::Halted), receipt: None, ended_at: None },
        };
        output.finish(slot).await;
        Done { index, visited }
    }

    async fn write_state(&mut self, node: &Arc<PlanNode>, step: u32) -> Result<(), GraphStop> {
        if node.common.state.is_empty() {
            return Ok(());
        }
        let (view, writing) = (self.scope.view(), Arc::clone(node));
        let numbering = node.makes_ids.then(|| {
            let place = format!("{}#{step}#state", self.frame.path(&node.name));
            Numbering::new(self.frame.input.run_of(step), place)
        });
        let heavy = self.scope.is_heavy();
        let filled = filled(self.env.ports.sandbox, heavy, view, numbering, move |view| {
            let filled = writing.common.state.iter().map(|(channel, template)| {
                fill(template, view).map_err(|error| {
                    let message = format!("state.{channel}: {}", error.message);
                    NodeError { message, ..error }
                })
            });
            filled.collect::<Result<Vec<Value>, NodeError>>()
        });
        let filled = filled.await.map_err(|error| self.failed_at(node, error))?;
        for ((channel, _), write) in node.common.state.iter().zip(filled) {
            self.scope.write(channel, write).map_err(|error| self.failed_at(node, error))?;
        }
        Ok(())
    }

    fn failed_at(&self, node: &PlanNode, error: NodeError) -> GraphStop {
        GraphStop::Failed(RunError::at(&self.frame.path(&node.name), error))
    }

    fn destination(&self, name: &str) -> Option<Destination> {
        if name == END {
            return Some(Destination::End);
        }
        self.plan.nodes.iter().position(|node| node.name == name).map(Destination::Node)
    }

    async fn after_start(&mut self) -> Result<Vec<usize>, GraphStop> {
        let view = self.scope.view();
        let mut due = Vec::new();
        for edge in self.plan.edges.iter().filter(|edge| edge.from.is_empty()) {
            let chosen = choose(self.env.ports.sandbox, &edge.target, &view, self.scope.is_heavy()).await;
            match chosen.map_err(unchosen)? {
                Some(Destination::Node(to)) => due.push(to),
                Some(Destination::End) => self.progress.reached_end = true,
                None => {}
            }
        }
        Ok(in_file_order(due))
    }

    /// Returns the nodes that are due after `finished` have run.
    async fn after(
        &mut self,
        finished: &[usize],
        diverted: &BTreeMap<usize, Destination>,
    ) -> Result<Vec<usize>, GraphStop> {
        let view = self.scope.view();
        let heavy = self.scope.is_heavy();
        let leads_on = |from: &usize| finished.contains(from) && !diverted.contains_key(from);
        let mut due = Vec::new();
        let mut continued: BTreeSet<usize> = BTreeSet::new();
        for (from, to) in diverted {
            match to {
                Destination::Node(to) => due.push(*to),
                Destination::End => self.ended_with.push(*from),
            }
        }
        for (edge, progress) in self.plan.edges.iter().zip(&mut self.progress.edges) {
            if edge.from.is_empty() || !edge.from.iter().any(leads_on) {
                continue;
            }
            if !progress.arrive(edge.from.iter().map(leads_on)) {
                continue;
            }
            continued.extend(&edge.from);
            let source = edge.from.first().and_then(|from| self.plan.nodes.get(*from));
            let chosen = choose(self.env.ports.sandbox, &edge.target, &view, heavy).await;
            let chosen = chosen.map_err(|error| match source {
                Some(node) => GraphStop::Failed(RunError::at(&self.frame.path(&node.name), error)),
                None => unchosen(error),
            })?;
            match chosen {
                Some(Destination::Node(to)) => due.push(to),
                Some(Destination::End) => self.ended_with.extend(&edge.from),
                None => {}
            }
        }
        self.progress.end_branches(self.plan, |from| leads_on(from) && !continued.contains(from));
        self.progress.reached_end |= !self.ended_with.is_empty();
        Ok(in_file_order(due))
    }

    /// The graph's `output`, or the results of the nodes that reached END.
    async fn output(&self) -> Result<Value, GraphStop> {
        if let Some(template) = &self.plan.output {
            let numbering = ids::are_made_in(&template.to_string()).then(|| {
                let run = self.frame.input.run_of(self.frame.step.unwrap_or(u32::MAX));
                Numbering::new(run, self.frame.path("#output"))
            });
            let (template, heavy, view) = (Arc::clone(template), self.scope.is_heavy(), self.scope.view());
            let filled =
                filled(self.env.ports.sandbox, heavy, view, numbering, move |view| fill(&template, view))
                    .await;
            return filled.map_err(|error| {
                GraphStop::Failed(RunError::whole(error.code, format!("output: {}", error.message)))
            });
        }
        let mut output = Map::new();
        for index in &self.ended_with {
            let Some(node) = self.plan.nodes.get(*index) else { continue };
            if let Some(result) = self.scope.result(&node.name) {
                output.insert(node.name.clone(), result);
            }
        }
        Ok(Value::Object(output))
    }
}

fn in_file_order(mut due: Vec<usize>) -> Vec<usize> {
    due.sort_unstable();
    due.dedup();
    due
}

/// A condition on an edge from START failed: no node caused it.
fn unchosen(error: NodeError) -> GraphStop {
    GraphStop::Failed(RunError::whole(error.code, error.message))
}

async fn choose(
    sandbox: &Sandbox,
    target: &PlanTarget,
    view: &View,
    heavy: bool,
) -> Result<Option<Destination>, NodeError> {
    match target {
        PlanTarget::To(to) => Ok(Some(*to)),
        PlanTarget::Cases { cases, otherwise } => {
            for (when, to) in cases {
                let (when, view) = (when.clone(), view.clone());
                if filled(sandbox, heavy, view, None, move |view| holds(&when, view)).await? {
                    return Ok(Some(*to));
                }
            }
            Ok(*otherwise)
        }
    }
}
