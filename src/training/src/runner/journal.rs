//! The in-memory journal of a case: its trace, and its questions, which the case answers.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::NodeError;
use engine::ports::{
    Answer, Answers, ExampleInputs, Journal, JournalError, SeenAttempt, SeenCall, StepKey, StepOutcome,
    StepRecord,
};
use parking_lot::Mutex;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::case::Case;

/// Maximum result bytes per trace; later results are omitted.
const LONGEST_TRACE: usize = 4 << 20;
/// Maximum bytes of inputs and calls per trace; later ones are omitted.
const LONGEST_DETAILS: usize = 4 << 20;
/// Maximum input bytes per example; four examples with outputs fit into a prompt's demo limit.
const LONGEST_INPUTS: usize = 8 << 10;

/// One visit to a node, as evaluators see it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct TraceStep {
    /// The node name, as in run traces.
    pub node: String,
    /// The node type; `model`, `tool` or `mcp` for an agent's steps.
    #[serde(rename = "type")]
    pub node_type: String,
    /// The visit number, from 1.
    pub visit: u32,
    /// The attempt number, from 1.
    pub attempt: u32,
    /// The node's fields after filling its templates; null if that failed or if the trace has no room.
    pub inputs: Value,
    /// The result, if there is one and the trace has room for it.
    pub output: Option<Value>,
    /// The reason for the failure.
    #[serde(serialize_with = "error_text")]
    pub error: Option<NodeError>,
    /// Duration of the attempt, including the time in which its calls waited.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
    /// The prompts that the node read, sorted.
    pub prompts_read: Vec<String>,
    /// Its answered model calls, as far as the trace has room.
    pub llm: Vec<SeenCall>,
    /// The model input, if input and result can form a demo. Hidden from evaluators.
    #[serde(skip)]
    pub example: Option<ExampleInputs>,
}

fn error_text<S: Serializer>(error: &Option<NodeError>, serializer: S) -> Result<S::Ok, S::Error> {
    let error = error.as_ref().map(|error| json!({"code": error.code.as_str(), "message": error.message}));
    error.serialize(serializer)
}

fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX).serialize(serializer)
}

/// An attempt, which identifies a question: node, visit, attempt number.
type Attempt = (String, u32, u32);

/// All node visits of a case with their super-steps.
#[derive(Default)]
struct Steps {
    all: Vec<(u32, TraceStep)>,
    /// Total bytes of results.
    bytes: usize,
    /// Total bytes of inputs and calls.
    details: usize,
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

    /// Parses a node result; `None` if the trace is full.
    fn kept(&self, result: &str) -> Option<Value> {
        let mut steps = self.steps.lock();
        steps.bytes = steps.bytes.saturating_add(result.len());
        if steps.bytes > LONGEST_TRACE { None } else { serde_json::from_str(result).ok() }
    }

    /// The inputs and calls of an attempt, as far as the trace has room.
    fn kept_details(&self, seen: SeenAttempt) -> (Value, Vec<SeenCall>) {
        let mut steps = self.steps.lock();
        let mut fits = |size: usize| {
            steps.details = steps.details.saturating_add(size);
            steps.details <= LONGEST_DETAILS
        };
        let inputs = if fits(seen.inputs_size) { seen.inputs } else { Value::Null };
        let calls = seen.calls.into_iter().filter(|call| fits(size_of_call(call))).collect();
        (inputs, calls)
    }

    /// The key of the first question without an answer.
    pub(super) fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }

    /// Sorts by super-step and name, because parallel nodes finish in random order.
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
        let StepRecord { step, node, visit, attempt, prompts_read, example, seen, .. } = row;
        let is_short = |example: &ExampleInputs| example.inputs.to_string().len() <= LONGEST_INPUTS;
        let example = example.filter(is_short);
        let (node_type, duration) =
            seen.as_ref().map(|seen| (seen.kind.to_owned(), seen.duration)).unwrap_or_default();
        let (inputs, llm) = seen.map(|seen| self.kept_details(*seen)).unwrap_or_default();
        let trace = TraceStep {
            node,
            node_type,
            visit,
            attempt,
            inputs,
            output,
            error,
            duration,
            prompts_read,
            llm,
            example,
        };
        self.steps.lock().all.push((step, trace));
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Total bytes of a call's texts.
fn size_of_call(call: &SeenCall) -> usize {
    let text = |message: &Value| match message.get("content").and_then(Value::as_str) {
        // Other members of a message are small.
        Some(content) if message.get("tool_calls").is_none() => content.len(),
        _ => message.to_string().len(),
    };
    let messages: usize = call.messages.as_array().into_iter().flatten().map(text).sum();
    let arguments: usize = call.tool_calls.iter().map(|tool| tool.arguments.to_string().len()).sum();
    messages.saturating_add(call.reply.len()).saturating_add(arguments)
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
