//! Runs a plan in super-steps. Each result becomes a journal row before anything depends on it.
//!
//! All due nodes run at the same time; then the edges, in file order, determine the next ones. Results already in the
//! journal are reused, so a run resumes after a crash where it stopped.

mod activity;
mod aside;
mod attachments;
mod attempt;
mod budget;
mod call;
mod collections;
mod delivery;
mod example;
mod frame;
mod input;
mod limit;
mod mocked;
mod nested;
mod node;
mod observer;
mod output;
mod plan;
pub mod ports;
mod progress;
mod reads;
mod recorded;
mod refill;
mod resume;
mod reuse;
mod scope;
mod seen;
mod spending;
mod steps;
mod stores;
mod unknown;
mod visit;
mod workflow;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use wire::ErrorCode;

pub use activity::{Activity, AskingStep, Idle};
pub(crate) use call::{AskedModel, Call};
pub use delivery::{Delivery, Mail};
pub(crate) use nested::Nested;
pub use node::{Effect, NodeType};
pub(crate) use node::{Failure, Node};
pub(crate) use output::StepOutput;
pub use plan::Plan;
pub use plan::PromptUse;
pub(crate) use plan::prompt_named;
pub(crate) use plan::{Destination, PlanEdge, PlanNode, PlanTarget};
pub(crate) use reads::reading_instructions;
pub use recorded::RecordedStep;
pub use refill::{FilledInput, refill};

use crate::execute::ports::Ports;
use crate::redact::Redactor;
use crate::{RunError, limits};
use budget::ExecutionBudget;
use frame::{Env, Frame};
use recorded::Recorded;

/// The input of a run.
#[derive(Debug, Clone)]
pub struct RunInput {
    /// The inputs.
    pub inputs: Value,
    /// The thread as `{role, content}`, this turn last; empty if unused.
    pub messages: Vec<Value>,
    /// The runnable config.
    pub config: Map<String, Value>,
    /// Information about the run, for templates.
    pub run: RunInfo,
    /// The runs that executed its steps, by first step: the repeated runs, then this one.
    pub lives: Vec<Life>,
    /// The run's deadline.
    pub deadline: Option<DateTime<Utc>>,
    /// Changes to its state during the run.
    pub patch: Option<Patch>,
}

/// A run that executed steps of this one; its clock and identifiers apply to those steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The first super-step that it executed, from 1.
    pub step: u32,
    /// Its id.
    pub run: String,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
    /// The thread as this run read it; `None`: as [`RunInput::messages`].
    pub messages: Option<Vec<Value>>,
}

impl RunInput {
    /// Returns the thread as a super-step's templates read it.
    pub(crate) fn messages_at(&self, step: u32) -> &[Value] {
        self.life(step).and_then(|life| life.messages.as_deref()).unwrap_or(&self.messages)
    }

    /// Returns the runs for a sub-workflow's frame, which reads the thread once.
    pub(crate) fn lives_without_messages(&self) -> Vec<Life> {
        let without = |Life { step, run, accepted_at, .. }: &Life| Life {
            step: *step,
            run: run.clone(),
            accepted_at: *accepted_at,
            messages: None,
        };
        self.lives.iter().map(without).collect()
    }

    /// Returns the run that executed a super-step.
    pub(crate) fn life(&self, step: u32) -> Option<&Life> {
        self.lives.iter().rev().find(|life| life.step <= step).or(self.lives.first())
    }

    /// Returns that run's id.
    pub(crate) fn run_of(&self, step: u32) -> Option<&str> {
        self.life(step).map(|life| life.run.as_str())
    }
}

/// A caller's change to a run's state before a super-step.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The super-step, from 1.
    pub step: u32,
    /// Channels and their new values, regardless of their rules.
    pub state: Map<String, Value>,
}

/// The value of `run` in templates.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RunInfo {
    /// The run's id.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Its thread, for a chat turn.
    pub thread_id: Option<String>,
    /// The trigger that started it.
    pub trigger: String,
}

/// The outcome of a graph that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Its output.
    pub output: Value,
    /// `run.incomplete`, if a join in this or a nested workflow was not met, or no branch reached END.
    pub warning: Option<RunError>,
}

impl From<Value> for Completed {
    fn from(output: Value) -> Self {
        Self { output, warning: None }
    }
}

/// Runs a plan to its end.
///
/// `recorded` is the journal from before a restart; empty for a new run. Rows of the last super-step are submitted to
/// the journal, but this function does not wait for them: the caller that ends the run writes its end after them.
/// Dropping the future stops the run.
///
/// # Errors
/// [`RunError`] names the code and, if known, the failed node.
pub async fn execute(
    plan: &Plan,
    input: RunInput,
    recorded: Vec<RecordedStep>,
    ports: Ports<'_>,
) -> Result<Completed, RunError> {
    let deadline = input.deadline;
    let budget = ExecutionBudget::new(&recorded);
    let env = Env {
        ports,
        warning: Mutex::new(workflow::recorded_warning(&recorded)),
        recorded: Recorded::new(recorded),
        redactor: Redactor::default(),
        noticed: Mutex::default(),
        missing_answer: Mutex::default(),
        budget,
        refill: None,
    };
    let now = input.life(1).map_or_else(|| ports.clock.now(), |life| life.accepted_at);
    let frame = Frame::outermost(now, input);
    let root = StepOutput::root(ports.output);
    let _busy = ports.activity.busy();
    let running = async {
        tokio::select! {
            biased;
            error = env.budget.exceeded() => Err(GraphStop::Failed(error)),
            ended = steps::run(&env, plan, &frame, &root, 0) => ended,
        }
    };
    let ended = match deadline {
        Some(deadline) => {
            let left = (deadline - ports.clock.now()).to_std().unwrap_or_default();
            kernel::timeout(ports.clock, left, running).await.unwrap_or_else(|| {
                let message = format!("the run had not ended at {}", deadline.format("%FT%TZ"));
                Err(GraphStop::Failed(RunError::whole(ErrorCode::RunTimeout, message)))
            })
        }
        None => running.await,
    };
    let Completed { output, warning } = ended.map_err(|stop| match stop {
        GraphStop::Failed(error) => error,
        // The only node in progress exceeded the budget, and nothing else has polled.
        GraphStop::Halted => {
            let exceeded = env.budget.error();
            exceeded.unwrap_or_else(|| RunError::whole(ErrorCode::Internal, "halted without a reason"))
        }
    })?;
    let fits = limits::json(&output);
    fits.map_err(|error| RunError::whole(error.code, format!("output: {}", error.message)))?;
    Ok(Completed { output, warning: warning.or_else(|| env.warning.lock().take()) })
}

/// The reason why a graph stopped early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum GraphStop {
    /// The graph failed.
    Failed(RunError),
    /// The enclosing run or node failed, and pending waits were dropped.
    Halted,
}
