//! Executes one case: the compiled plan with its own ports. The journal is in memory and the output is collected;
//! nothing becomes a run.

mod bench;
mod clock;
mod journal;
mod output;
mod question;

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::ports::Ports;
use engine::{Activity, Life, Plan, RunError, RunInfo, RunInput, execute};
use serde_json::{Map, Value};

use self::clock::{CaseTime, FrozenClock};
use self::journal::{CaseJournal, TraceStep};
use self::output::CaseText;
use crate::calls::CallScope;
use crate::case::Case;
use crate::mocks::Mocks;

pub use self::bench::CaseBench;
pub use self::journal::TraceStep as CaseStep;
pub use self::question::{NoReply, ask, optimizer_problem};

/// The settings that all cases of a run share.
#[derive(Debug, Clone)]
pub struct CaseSettings {
    /// The id of the training or evaluation.
    pub run: String,
    /// The workflow id.
    pub workflow: String,
    /// The acceptance time, which templates see as the current time. The same in each repeat.
    pub accepted_at: DateTime<Utc>,
    /// `run.trigger` in templates: `training` or `evaluation`.
    pub trigger: &'static str,
    /// Request inputs; the case's inputs take precedence.
    pub inputs: Map<String, Value>,
    /// Request mocks; the case's mocks take precedence.
    pub mocks: Option<Map<String, Value>>,
    /// Whether nodes may really send data.
    pub may_send: bool,
    /// Maximum duration per case, without the time in which its calls wait for permits.
    pub limit: Duration,
}

/// The result of an executed case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRun {
    /// The graph output; null if the case failed.
    pub output: Value,
    /// The text of all nodes in order, else `output.reply`, else the output.
    pub text: String,
    /// The reason for a missing output.
    pub error: Option<CaseError>,
    /// The trace by super-step and node name.
    pub trace: Vec<TraceStep>,
    /// Duration without the time in which calls waited for permits; replayed calls count with their original
    /// duration.
    pub duration: Duration,
    /// Cost of the case's own calls, without evaluators, in nanodollars; `None` if a model's price is unknown.
    pub cost: Option<u64>,
}

/// The reason why a case has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseError {
    /// The case exceeded its time limit.
    Timeout,
    /// A question has no answer in `metadata.answers`.
    AnswerMissing {
        /// The question's key.
        key: String,
    },
    /// The inputs do not match the graph's schema.
    Inputs {
        /// The first problem.
        message: String,
    },
    /// The run's budget is spent: the case has no score.
    Exhausted,
    /// A node failed.
    Failed(RunError),
}

impl CaseError {
    /// The code in events.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Timeout => "case_timeout",
            Self::AnswerMissing { .. } => "answer_missing",
            Self::Inputs { .. } => "run.inputs_invalid",
            Self::Exhausted => "budget",
            Self::Failed(error) => error.code.as_str(),
        }
    }

    /// The message for people.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Timeout => "the case took longer than case_timeout_seconds".to_owned(),
            Self::AnswerMissing { key } => format!("metadata.answers has no '{key}', which a node requests"),
            Self::Inputs { message } => message.clone(),
            Self::Exhausted => "the budget of the run is spent".to_owned(),
            Self::Failed(error) => error.message.clone(),
        }
    }
}

/// Runs a case with a config. Case-specific ports replace those in `ports`.
pub async fn run_case(
    plan: &Plan,
    config: &Map<String, Value>,
    case: &Case,
    settings: &CaseSettings,
    scope: &CallScope<'_>,
    ports: Ports<'_>,
) -> CaseRun {
    let inputs = case.inputs(&settings.inputs);
    if let Some(problem) = plan.check_inputs(&inputs).into_iter().next() {
        let message = format!("inputs{}: {}", problem.pointer, problem.message);
        return CaseRun::failed(CaseError::Inputs { message });
    }
    let mocks = Mocks { case: case.mocks(), request: settings.mocks.as_ref(), may_send: settings.may_send };
    let journal = CaseJournal::new(case);
    let (text, activity) = (CaseText::default(), Activity::default());
    let clock = FrozenClock { clock: Arc::clone(scope.clock()), at: settings.accepted_at };
    let ports = Ports {
        journal: &journal,
        output: &text,
        clock: &clock,
        observer: scope,
        answers: &journal,
        rehearsal: Some(&mocks),
        activity: &activity,
        ..ports
    };
    let input = run_input(case, inputs, config, settings);
    let (before, time) = (scope.spent(), CaseTime::begin(scope));
    let ended = tokio::select! {
        biased;
        () = scope.exhausted().cancelled() => Err(CaseError::Exhausted),
        ended = execute(plan, input, Vec::new(), ports) => {
            ended.map(|completed| completed.output).map_err(CaseError::Failed)
        }
        () = time.reaches(settings.limit) => Err(CaseError::Timeout),
    };
    // A node may hide that the budget refused its call.
    let ended = if scope.exhausted().is_cancelled() { Err(CaseError::Exhausted) } else { ended };
    let missing = journal.missing().map(|key| CaseError::AnswerMissing { key });
    let (output, error) = match (ended, missing) {
        (Ok(output), None) => (output, None),
        (_, Some(missing)) => (Value::Null, Some(missing)),
        (Err(error), None) => (Value::Null, Some(error)),
    };
    let text = text_of(text.all(), &output);
    let (duration, cost) = (time.spent().saturating_add(scope.replayed()), scope.spent().cost_since(&before));
    CaseRun { output, text, error, duration, cost, trace: journal.into_trace() }
}

/// The input of a case's execution.
fn run_input(case: &Case, inputs: Value, config: &Map<String, Value>, settings: &CaseSettings) -> RunInput {
    let id = format!("{}-{}", settings.run, case.index);
    RunInput {
        messages: case.messages(&inputs),
        inputs,
        config: config.clone(),
        run: RunInfo {
            id: id.clone(),
            workflow_id: settings.workflow.clone(),
            thread_id: None,
            trigger: settings.trigger.to_owned(),
        },
        lives: vec![Life { step: 1, run: id, accepted_at: settings.accepted_at, messages: None }],
        deadline: None,
        patch: None,
    }
}

impl CaseRun {
    /// Wraps an output that was recorded elsewhere.
    #[must_use]
    pub fn recorded(output: &Value) -> Self {
        Self {
            output: output.clone(),
            text: text_of(String::new(), output),
            error: None,
            trace: Vec::new(),
            duration: Duration::ZERO,
            cost: Some(0),
        }
    }

    /// Drops the details that only evaluators and trace readers need: a search keeps many results in memory.
    #[must_use]
    pub fn without_details(mut self) -> Self {
        for step in &mut self.trace {
            step.inputs = Value::Null;
            step.llm = Vec::new();
        }
        self
    }

    fn failed(error: CaseError) -> Self {
        Self {
            output: Value::Null,
            text: String::new(),
            error: Some(error),
            trace: Vec::new(),
            duration: Duration::ZERO,
            cost: Some(0),
        }
    }
}

fn text_of(said: String, output: &Value) -> String {
    if !said.is_empty() {
        return said;
    }
    match (output.get("reply").and_then(Value::as_str), output) {
        (Some(reply), _) => reply.to_owned(),
        (None, Value::String(text)) => text.clone(),
        (None, Value::Null) => String::new(),
        (None, output) => output.to_string(),
    }
}
