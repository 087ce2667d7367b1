//! The journal of a case, in memory: its trace, and the questions that are answered from the case.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::NodeError;
use engine::ports::{
    Answer, Answers, ExampleInputs, Journal, JournalError, StepKey, StepOutcome, StepRecord,
};
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::case::Case;

/// Bytes of results that a trace has; those after them are left out.
const LONGEST_TRACE: usize = 4 << 20;
/// Bytes of the inputs of an example; four of them with their outputs are within the limit of a prompt's demos.
const LONGEST_INPUTS: usize = 8 << 10;

/// One visit of a node, as evaluators see it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceStep {
    /// The node, as in traces of runs.
    pub node: String,
    /// Which visit, from 1.
    pub visit: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its result, if it has one and the trace has room for it.
    pub output: Option<Value>,
    /// Why it failed.
    #[serde(serialize_with = "error_text")]
    pub error: Option<NodeError>,
    /// The prompts that it read, sorted.
    pub prompts_read: Vec<String>,
    /// What its model was asked, if that and its result can be a demo. Not for evaluators.
    #[serde(skip)]
    pub example: Option<ExampleInputs>,
}

fn error_text<S: Serializer>(error: &Option<NodeError>, serializer: S) -> Result<S::Ok, S::Error> {
    let error = error.as_ref().map(|error| json!({"code": error.code.as_str(), "message": error.message}));
    error.serialize(serializer)
}

/// A question by its attempt.
type Attempt = (String, u32, u32);

/// The visits of a case with their super-steps.
#[derive(Default)]
struct Steps {
    all: Vec<(u32, TraceStep)>,
    /// Bytes of their results.
    bytes: usize,
}

/// The journal of one case.
pub(super) struct CaseJournal<'a> {
    case: &'a Case,
    steps: Mutex<Steps>,
    questions: Mutex<HashMap<Attempt, (String, DateTime<Utc>)>>,
    missing: Mutex<Option<String>>,
}

impl<'a> CaseJournal<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self { case, steps: Mutex::default(), questions: Mutex::default(), missing: Mutex::default() }
    }

    /// The result of a node, unless the trace is too long already.
    fn kept(&self, result: &str) -> Option<Value> {
        let mut steps = self.steps.lock();
        steps.bytes = steps.bytes.saturating_add(result.len());
        if steps.bytes > LONGEST_TRACE { None } else { serde_json::from_str(result).ok() }
    }

    /// The key of a question without an answer.
    pub(super) fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }

    /// By super-step and name: which of two parallel nodes ends first is chance.
    pub(super) fn into_trace(self) -> Vec<TraceStep> {
        let mut steps = self.steps.into_inner().all;
        steps.sort_by(|(step, one), (other_step, other)| {
            let key = |step: &TraceStep| (step.visit, step.attempt);
            step.cmp(other_step).then_with(|| one.node.cmp(&other.node)).then(key(one).cmp(&key(other)))
        });
        steps.into_iter().map(|(_, step)| step).collect()
    }
}

impl Journal for CaseJournal<'_> {
    fn record(&self, row: StepRecord) -> futures_util::future::BoxFuture<'static, Result<(), JournalError>> {
        let (output, error) = match row.outcome {
            StepOutcome::Started => {
                if let Some(question) = row.question {
                    let attempt = (row.node, row.visit, row.attempt);
                    self.questions.lock().insert(attempt, (question.key, row.started_at));
                }
                return Box::pin(std::future::ready(Ok(())));
            }
            StepOutcome::Succeeded { result, .. } => (self.kept(&result), None),
            StepOutcome::Failed { error, .. } => (None, Some(error)),
        };
        let StepRecord { step, node, visit, attempt, prompts_read, example, .. } = row;
        let is_short = |example: &ExampleInputs| example.inputs.to_string().len() <= LONGEST_INPUTS;
        let example = example.filter(is_short);
        let trace = TraceStep { node, visit, attempt, output, error, prompts_read, example };
        self.steps.lock().all.push((step, trace));
        Box::pin(std::future::ready(Ok(())))
    }
}

#[async_trait]
impl Answers for CaseJournal<'_> {
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError> {
        let answer = self.stored(step).await?;
        answer.ok_or_else(|| JournalError("a question without a record".to_owned()))
    }

    async fn stored(&self, step: StepKey<'_>) -> Result<Option<Answer>, JournalError> {
        let attempt = (step.node.to_owned(), step.visit, step.attempt);
        let Some((key, at)) = self.questions.lock().get(&attempt).cloned() else { return Ok(None) };
        match self.case.answer(&key) {
            Some(value) => Ok(Some(Answer { value: value.clone(), by: None, at })),
            None => {
                let message = format!("no answer to '{key}'");
                self.missing.lock().get_or_insert(key);
                Err(JournalError(message))
            }
        }
    }
}
