//! Runs one case: the frozen plan with ports of its own. Its journal is in memory, its output is collected, nothing of it is a run.

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

use self::clock::FrozenClock;
use self::journal::{CaseJournal, TraceStep};
use self::output::CaseText;
use crate::calls::CallScope;
use crate::case::Case;
use crate::mocks::Mocks;

pub use self::bench::CaseBench;
pub use self::journal::TraceStep as CaseStep;
pub use self::question::{NoReply, ask, optimizer_problem};

/// What all cases of a run have in common.
#[derive(Debug, Clone)]
pub struct CaseSettings {
    /// The training or evaluation.
    pub run: String,
    /// Its workflow.
    pub workflow: String,
    /// When it was accepted: the time that templates see. The same in each repeat.
    pub accepted_at: DateTime<Utc>,
    /// `run.trigger` in templates: `training` or `evaluation`.
    pub trigger: &'static str,
    /// Inputs under those of the case.
    pub inputs: Map<String, Value>,
    /// Results of nodes, under those of the case.
    pub mocks: Option<Map<String, Value>>,
    /// Whether nodes may really send something.
    pub may_send: bool,
    /// How long a case may take, without the time in which its calls wait for permits.
    pub limit: Duration,
}

/// The result of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseRun {
    /// The output of the graph; null if it failed.
    pub output: Value,
    /// All text of the nodes in order, else `output.reply`, else the output.
    pub text: String,
    /// Why the output is missing.
    pub error: Option<CaseError>,
    /// The nodes by super-step and name.
    pub trace: Vec<TraceStep>,
    /// Without the time in which calls waited for permits; calls that were answered before took as long as then.
    pub duration: Duration,
    /// What its own calls cost, in nanodollars, those of evaluators aside; `None` if the price of a model is not known.
    pub cost: Option<u64>,
}

/// Why a case has no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseError {
    /// It took too long.
    Timeout,
    /// A question has no answer in `metadata.answers`.
    AnswerMissing {
        /// The key of the question.
        key: String,
    },
    /// The inputs do not match the graph's schema.
    Inputs {
        /// The first problem.
        message: String,
    },
    /// The budget of the run is spent: the case has no score.
    Exhausted,
    /// A node failed.
    Failed(RunError),
}

impl CaseError {
    /// Its code in events.
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

    /// For people.
    #[must_use]
    pub fn message(&self) -> String {
        match self {
            Self::Timeout => "the case took longer than case_timeout_seconds".to_owned(),
            Self::AnswerMissing { key } => format!("metadata.answers has no '{key}', for which a node asks"),
            Self::Inputs { message } => message.clone(),
            Self::Exhausted => "the budget of the run is spent".to_owned(),
            Self::Failed(error) => error.message.clone(),
        }
    }
}

/// Runs a case with a config. Of `ports`, what the case has of its own is replaced.
pub async fn run_case(
    (plan, config): (&Plan, &Map<String, Value>),
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
    let id = format!("{}-{}", settings.run, case.index);
    let input = RunInput {
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
    };
    let before = scope.spent();
    let real = scope.clock();
    let begun = real.monotonic();
    let spent = || real.monotonic().saturating_sub(begun).saturating_sub(scope.waited());
    let over = async {
        loop {
            match settings.limit.saturating_sub(spent()) {
                Duration::ZERO => break,
                // Meanwhile calls may have waited, which does not count.
                left => real.sleep(left).await,
            }
        }
    };
    let ended = tokio::select! {
        biased;
        () = scope.exhausted().cancelled() => Err(CaseError::Exhausted),
        ended = execute(plan, input, Vec::new(), ports) => {
            ended.map(|completed| completed.output).map_err(CaseError::Failed)
        }
        () = over => Err(CaseError::Timeout),
    };
    // A node may hide what its call was refused.
    let ended = if scope.exhausted().is_cancelled() { Err(CaseError::Exhausted) } else { ended };
    let missing = journal.missing().map(|key| CaseError::AnswerMissing { key });
    let (output, error) = match (ended, missing) {
        (Ok(output), None) => (output, None),
        (_, Some(missing)) => (Value::Null, Some(missing)),
        (Err(error), None) => (Value::Null, Some(error)),
    };
    let text = text_of(text.all(), &output);
    let (duration, cost) = (spent().saturating_add(scope.replayed()), scope.spent().cost_since(&before));
    CaseRun { output, text, error, duration, cost, trace: journal.into_trace() }
}

impl CaseRun {
    /// An output that was recorded elsewhere.
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

    /// Without what only evaluators and readers of the trace need: a search keeps many results in memory.
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
