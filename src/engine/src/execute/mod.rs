//! Running a plan in super-steps, each result a journal row before anything depends on it.
//!
//! Every node that is due runs at the same time; then the edges, in the order of the file, say which nodes are due
//! next. Results that the journal already has are taken from it, so a run resumes after a crash where it was.

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
mod reuse;
mod scope;
mod seen;
mod spending;
mod steps;
mod stores;
mod unknown;
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
use budget::Budget;
use frame::{Env, Frame};
use recorded::Recorded;

/// What a run is given.
#[derive(Debug, Clone)]
pub struct RunInput {
    /// The inputs.
    pub inputs: Value,
    /// The thread as `{role, content}`, this turn last; empty where nothing reads it.
    pub messages: Vec<Value>,
    /// The runnable config.
    pub config: Map<String, Value>,
    /// What the run may know of itself.
    pub run: RunInfo,
    /// The runs whose steps it has, by the steps they begin with: itself last, before it those that it repeats.
    pub lives: Vec<Life>,
    /// When it has to be over.
    pub deadline: Option<DateTime<Utc>>,
    /// What is changed of its state on the way.
    pub patch: Option<Patch>,
}

/// A run that has executed steps of this one: its clock and its identifiers count for them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// The first super-step that it has executed, from 1.
    pub step: u32,
    /// Its id.
    pub run: String,
    /// When it was accepted.
    pub accepted_at: DateTime<Utc>,
    /// The thread as this run has read it; `None`: as [`RunInput::messages`].
    pub messages: Option<Vec<Value>>,
}

impl RunInput {
    /// The thread as the templates of a super-step read it.
    pub(crate) fn messages_at(&self, step: u32) -> &[Value] {
        self.life(step).and_then(|life| life.messages.as_deref()).unwrap_or(&self.messages)
    }

    /// The runs for the frame of a sub-workflow, which reads the thread once.
    pub(crate) fn lives_without_messages(&self) -> Vec<Life> {
        let without = |Life { step, run, accepted_at, .. }: &Life| Life {
            step: *step,
            run: run.clone(),
            accepted_at: *accepted_at,
            messages: None,
        };
        self.lives.iter().map(without).collect()
    }

    /// The run that has executed a super-step.
    pub(crate) fn life(&self, step: u32) -> Option<&Life> {
        self.lives.iter().rev().find(|life| life.step <= step).or(self.lives.first())
    }

    /// The id of that run.
    pub(crate) fn run_of(&self, step: u32) -> Option<&str> {
        self.life(step).map(|life| life.run.as_str())
    }
}

/// What a caller changes of a run's state before one of its super-steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// The super-step, from 1.
    pub step: u32,
    /// Channels and what they hold from then on, whatever their rule.
    pub state: Map<String, Value>,
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

/// The end of a graph that did not fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completed {
    /// Its output.
    pub output: Value,
    /// `run.incomplete`, if a join in it or in a workflow inside it was not met, or no branch reached END.
    pub warning: Option<RunError>,
}

impl From<Value> for Completed {
    fn from(output: Value) -> Self {
        Self { output, warning: None }
    }
}

/// Runs a plan to its end.
///
/// `recorded` is the journal of an earlier life; empty for a new run. Rows of the last super-step are handed to the
/// journal but not waited for: the caller that ends the run writes its end after them. Dropping the future stops the
/// run.
///
/// # Errors
/// [`RunError`] names the code and, where there is one, the node at fault.
pub async fn execute(
    plan: &Plan,
    input: RunInput,
    recorded: Vec<RecordedStep>,
    ports: Ports<'_>,
) -> Result<Completed, RunError> {
    let deadline = input.deadline;
    let budget = Budget::new(&recorded);
    let env = Env {
        ports,
        warning: Mutex::new(workflow::recorded_warning(&recorded)),
        recorded: Recorded::new(recorded),
        redactor: Redactor::default(),
        noticed: Mutex::default(),
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
            error = env.budget.exceeded() => Err(Stop::Failed(error)),
            ended = steps::run(&env, plan, &frame, &root, 0) => ended,
        }
    };
    let ended = match deadline {
        Some(deadline) => {
            let left = (deadline - ports.clock.now()).to_std().unwrap_or_default();
            kernel::timeout(ports.clock, left, running).await.unwrap_or_else(|| {
                let message = format!("the run had not ended at {}", deadline.format("%FT%TZ"));
                Err(Stop::Failed(RunError::whole(ErrorCode::RunTimeout, message)))
            })
        }
        None => running.await,
    };
    let Completed { output, warning } = ended.map_err(|stop| match stop {
        Stop::Failed(error) => error,
        // The only node in progress has exceeded the budget, and nothing else has polled.
        Stop::Halted => {
            let exceeded = env.budget.error();
            exceeded.unwrap_or_else(|| RunError::whole(ErrorCode::Internal, "halted without a reason"))
        }
    })?;
    let fits = limits::json(&output);
    fits.map_err(|error| RunError::whole(error.code, format!("output: {}", error.message)))?;
    Ok(Completed { output, warning: warning.or_else(|| env.warning.lock().take()) })
}

/// Why a graph did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It failed.
    Failed(RunError),
    /// What it is a part of has failed, and what only waited was not waited for.
    Halted,
}
