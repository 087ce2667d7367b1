//! Running a plan in super-steps, each result a journal row before anything depends on it.
//!
//! Every node that is due runs at the same time; then the edges, in the order of the file, say which nodes are due
//! next. Results that the journal already has are taken from it, so a run goes on after a crash where it was.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kernel::Clock;
use minijinja::Value as View;
use minijinja::value::Serde;
use serde_json::{Map, Value};
use wire::ErrorCode;

use crate::compile::{Destination, Plan, PlanNode, PlanTarget};
use crate::nodes::Call;
use crate::output::StepOutput;
use crate::ports::{Journal, StepOutcome, StepRecord, TextSink};
use crate::template::{fill, holds};
use crate::{NodeError, RunError};

/// Super-steps of a run unless its config says otherwise.
const RECURSION_LIMIT: u32 = 50;
/// Most super-steps that a config may ask for.
const RECURSION_MAX: u32 = 250;

/// What a run is given.
#[derive(Debug, Clone)]
pub struct RunInput {
    /// The inputs.
    pub inputs: Value,
    /// The thread as `{role, content}`, this turn last; empty where nothing reads it.
    pub messages: Vec<Value>,
    /// The runnable config of the version.
    pub config: Map<String, Value>,
    /// What the run may know of itself.
    pub run: RunInfo,
}

/// What a run may know of itself, `run` in templates.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RunInfo {
    /// The run.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Its thread, for a chat turn.
    pub thread_id: Option<String>,
    /// What began it.
    pub trigger: String,
}

/// A journal row of an earlier life of this run.
#[derive(Debug, Clone)]
pub struct RecordedStep {
    /// The node's name.
    pub node: String,
    /// Which visit, from 1.
    pub visit: u32,
    /// Its result, if the attempt succeeded.
    pub result: Option<Value>,
    /// Why it failed, if it did. Neither: its outcome is unknown.
    pub error: Option<NodeError>,
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
}

/// Runs a plan to its end and yields its output.
///
/// `recorded` is the journal of an earlier life; empty for a new run. Rows of the last super-step are handed to the
/// journal but not waited for: whoever ends the run writes its end behind them.
///
/// # Errors
/// [`RunError`] names the code and, where there is one, the node at fault.
pub async fn execute(
    plan: &Plan,
    input: RunInput,
    recorded: &[RecordedStep],
    journal: &dyn Journal,
    sink: &dyn TextSink,
    clock: &dyn Clock,
) -> Result<Value, RunError> {
    let limit = recursion_limit(&input.config)?;
    let mut run = Execution {
        plan,
        recorded,
        journal,
        sink,
        clock,
        scope: Scope::new(&input),
        visits: vec![0; plan.nodes.len()],
        arrived: plan.edges.iter().map(|edge| vec![false; edge.from.len()]).collect(),
        ended_with: Vec::new(),
    };
    let mut due = run.after_start()?;
    let mut step = 0;
    let mut receipts: Vec<Receipt> = Vec::new();
    while !due.is_empty() {
        step += 1;
        if step > limit {
            let message = format!("the run is not over after {limit} steps");
            return Err(RunError::whole(ErrorCode::RunRecursionLimit, message));
        }
        for receipt in receipts.drain(..) {
            receipt.await.map_err(lost)?;
        }
        receipts = run.step(step, &due).await?;
        due = run.after(&due)?;
    }
    run.output()
}

fn lost(error: crate::ports::JournalError) -> RunError {
    RunError::whole(ErrorCode::Internal, error.to_string())
}

fn recursion_limit(config: &Map<String, Value>) -> Result<u32, RunError> {
    let Some(wanted) = config.get("recursion_limit") else { return Ok(RECURSION_LIMIT) };
    let limit = wanted.as_u64().and_then(|limit| u32::try_from(limit).ok());
    limit.filter(|limit| (1..=RECURSION_MAX).contains(limit)).ok_or_else(|| {
        let message = format!("recursion_limit must be a whole number from 1 to {RECURSION_MAX}");
        RunError::whole(ErrorCode::NodeFailed, message)
    })
}

/// The names that templates see.
struct Scope {
    fixed: BTreeMap<&'static str, View>,
    results: BTreeMap<String, View>,
}

impl Scope {
    fn new(input: &RunInput) -> Self {
        let fixed = BTreeMap::from([
            ("inputs", View::from(Serde(&input.inputs))),
            ("messages", View::from(Serde(&input.messages))),
            ("config", View::from(Serde(&input.config))),
            ("run", View::from(Serde(&input.run))),
        ]);
        Self { fixed, results: BTreeMap::new() }
    }

    fn view(&self) -> View {
        let results = View::from_pairs(self.results.iter().map(|(name, view)| (name.as_str(), view.clone())));
        let fixed = self.fixed.iter().map(|(name, view)| (*name, view.clone()));
        View::from_pairs(fixed.chain([("results", results)]))
    }
}

type Receipt = futures_util::future::BoxFuture<'static, Result<(), crate::ports::JournalError>>;

struct Execution<'a> {
    plan: &'a Plan,
    recorded: &'a [RecordedStep],
    journal: &'a dyn Journal,
    sink: &'a dyn TextSink,
    clock: &'a dyn Clock,
    scope: Scope,
    visits: Vec<u32>,
    /// For each edge, which of its sources have finished since it last led on.
    arrived: Vec<Vec<bool>>,
    /// Nodes whose edge reached END, with their last result.
    ended_with: Vec<usize>,
}

/// What one node of a step left.
struct Done {
    index: usize,
    result: Result<Value, RunError>,
    receipt: Option<Receipt>,
}

impl Execution<'_> {
    /// Runs the nodes that are due and takes their results into the scope.
    async fn step(&mut self, step: u32, due: &[usize]) -> Result<Vec<Receipt>, RunError> {
        for index in due {
            if let Some(visits) = self.visits.get_mut(*index) {
                *visits += 1;
            }
        }
        let view = self.scope.view();
        let streaming: Vec<usize> =
            due.iter().copied().filter(|index| self.node(*index).is_some_and(|n| n.node.streams())).collect();
        let output = StepOutput::new(self.sink, streaming.len());
        let mut running: FuturesUnordered<_> = due
            .iter()
            .map(|index| {
                let slot = streaming.iter().position(|streaming| streaming == index);
                self.node_step(step, *index, slot.unwrap_or(usize::MAX), &view, &output)
            })
            .collect();
        let mut done = Vec::with_capacity(due.len());
        while let Some(one) = running.next().await {
            done.push(one);
        }
        drop(running);
        // Results count in the order of the file, whatever came first.
        done.sort_by_key(|done| done.index);
        let mut receipts = Vec::new();
        for one in done {
            receipts.extend(one.receipt);
            let Some(node) = self.plan.nodes.get(one.index) else { continue };
            match one.result {
                Ok(result) => {
                    self.scope.results.insert(node.name.clone(), View::from(Serde(&result)));
                }
                Err(error) => return Err(error),
            }
        }
        Ok(receipts)
    }

    fn node(&self, index: usize) -> Option<&PlanNode> {
        self.plan.nodes.get(index)
    }

    async fn node_step(
        &self,
        step: u32,
        index: usize,
        slot: usize,
        view: &View,
        output: &StepOutput<'_>,
    ) -> Done {
        let Some(node) = self.node(index) else {
            let error = RunError::whole(ErrorCode::Internal, "the plan has no such node");
            return Done { index, result: Err(error), receipt: None };
        };
        let visit = self.visits.get(index).copied().unwrap_or_default();
        let earlier: Vec<&RecordedStep> =
            self.recorded.iter().filter(|row| row.node == node.name && row.visit == visit).collect();
        if let Some(result) = earlier.iter().find_map(|row| row.result.clone()) {
            if let Some(text) = node.node.written(&result) {
                output.write(slot, &text).await;
            }
            output.finish(slot).await;
            return Done { index, result: Ok(result), receipt: None };
        }
        if let Some(error) = earlier.iter().find_map(|row| row.error.clone()) {
            output.finish(slot).await;
            return Done { index, result: Err(RunError::at(&node.name, error)), receipt: None };
        }
        let begun = earlier.iter().map(|row| row.started_at).min();
        let (result, receipt) = self.attempt(step, node, visit, slot, begun, view, output).await;
        output.finish(slot).await;
        Done { index, result, receipt }
    }

    #[expect(clippy::too_many_arguments, reason = "one attempt is all of these")]
    async fn attempt(
        &self,
        step: u32,
        node: &PlanNode,
        visit: u32,
        slot: usize,
        begun: Option<DateTime<Utc>>,
        view: &View,
        output: &StepOutput<'_>,
    ) -> (Result<Value, RunError>, Option<Receipt>) {
        let started_at = begun.unwrap_or_else(|| self.clock.now());
        let mut record = StepRecord {
            step,
            node: node.name.clone(),
            visit,
            attempt: 1,
            begun: begun.is_some(),
            input_digest: [0; 32],
            started_at,
            outcome: StepOutcome::Started,
        };
        let result = match node.node.input(view) {
            Ok(input) => {
                record.input_digest = crate::canonical::sha256(&[input.to_string().as_bytes()]);
                if node.node.records_start() {
                    if let Err(error) = self.journal.record(record.clone()).await {
                        return (Err(lost(error)), None);
                    }
                    record.begun = true;
                }
                let call = Call { clock: self.clock, output, slot, started_at };
                let work = node.node.run(input, &call);
                match node.timeout {
                    Some(limit) => kernel::timeout(self.clock, limit, work).await.unwrap_or_else(|| {
                        let message = format!("took longer than {} s", limit.as_secs_f64());
                        Err(NodeError { code: ErrorCode::NodeTimeout, message })
                    }),
                    None => work.await,
                }
            }
            Err(error) => Err(error),
        };
        let finished_at = self.clock.now();
        record.outcome = match &result {
            Ok(result) => StepOutcome::Succeeded { result: result.clone(), finished_at },
            Err(error) => StepOutcome::Failed { error: error.clone(), finished_at },
        };
        let receipt = self.journal.record(record);
        (result.map_err(|error| RunError::at(&node.name, error)), Some(receipt))
    }

    fn after_start(&self) -> Result<Vec<usize>, RunError> {
        let view = self.scope.view();
        let mut due = Vec::new();
        for edge in self.plan.edges.iter().filter(|edge| edge.from.is_empty()) {
            if let Some(Destination::Node(to)) = choose(&edge.target, &view).map_err(unchosen)? {
                due.push(to);
            }
        }
        Ok(in_file_order(due))
    }

    /// The nodes that are due after `finished` have run.
    fn after(&mut self, finished: &[usize]) -> Result<Vec<usize>, RunError> {
        let view = self.scope.view();
        let mut due = Vec::new();
        for (edge, arrived) in self.plan.edges.iter().zip(&mut self.arrived) {
            if edge.from.is_empty() || !edge.from.iter().any(|from| finished.contains(from)) {
                continue;
            }
            for (from, arrived) in edge.from.iter().zip(arrived.iter_mut()) {
                *arrived |= finished.contains(from);
            }
            if !arrived.iter().all(|arrived| *arrived) {
                continue;
            }
            arrived.fill(false);
            let source = edge.from.first().and_then(|from| self.plan.nodes.get(*from));
            let chosen = choose(&edge.target, &view).map_err(|error| match source {
                Some(node) => RunError::at(&node.name, error),
                None => unchosen(error),
            })?;
            match chosen {
                Some(Destination::Node(to)) => due.push(to),
                Some(Destination::End) => self.ended_with.extend(&edge.from),
                None => {}
            }
        }
        Ok(in_file_order(due))
    }

    /// The graph's `output`, or the results of the nodes that reached END.
    fn output(&self) -> Result<Value, RunError> {
        if let Some(template) = &self.plan.output {
            return fill(template, &self.scope.view())
                .map_err(|error| RunError::whole(error.code, format!("output: {}", error.message)));
        }
        let mut output = Map::new();
        for index in &self.ended_with {
            let Some(node) = self.plan.nodes.get(*index) else { continue };
            if let Some(result) = self.scope.results.get(&node.name) {
                output.insert(node.name.clone(), serde_json::to_value(result).unwrap_or(Value::Null));
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

/// A condition out of START failed: no node is at fault.
fn unchosen(error: NodeError) -> RunError {
    RunError::whole(error.code, error.message)
}

fn choose(target: &PlanTarget, view: &View) -> Result<Option<Destination>, NodeError> {
    match target {
        PlanTarget::To(to) => Ok(Some(*to)),
        PlanTarget::Cases { cases, otherwise } => {
            for (when, to) in cases {
                if holds(when, view)? {
                    return Ok(Some(*to));
                }
            }
            Ok(*otherwise)
        }
    }
}
