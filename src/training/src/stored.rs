//! Stored case and call results as JSON, which round-trips bit for bit.

use std::time::Duration;

use engine::ports::{ExampleInputs, SeenCall};
use engine::{NodeError, RunError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wire::ErrorCode;

use crate::calls::{Amount, Reply, Spent};
use crate::evaluators::Verdict;
use crate::runner::{CaseError, CaseRun, CaseStep};

/// A case result as its row stores it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredResult {
    /// The graph output.
    pub output: Value,
    /// The full output text.
    pub text: String,
    /// The reason for a missing output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StoredError>,
    /// The executed nodes by super-step and name.
    pub trace: Vec<StoredStep>,
    /// The verdicts in evaluator order.
    pub verdicts: Vec<Verdict>,
    /// Duration in nanoseconds, without the time in which calls waited.
    pub duration_ns: u64,
    /// Cost without the evaluators' calls, in nanodollars; `None` if a price is unknown.
    #[serde(default)]
    pub cost: Option<u64>,
    /// Usage in all its calls, including its evaluators.
    #[serde(default)]
    pub spent: StoredSpent,
}

/// Call usage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredSpent {
    /// Answered calls, with or without a request.
    pub answered: u64,
    /// Requests sent.
    pub calls: u64,
    /// Tokens that models read.
    pub input_tokens: u64,
    /// Tokens that models wrote.
    pub output_tokens: u64,
    /// Cost in nanodollars.
    pub nanodollars: u64,
}

impl From<Spent> for StoredSpent {
    fn from(spent: Spent) -> Self {
        let Amount { calls, input_tokens, output_tokens, nanodollars } = spent.used;
        Self { answered: spent.answered, calls, input_tokens, output_tokens, nanodollars }
    }
}

impl From<StoredSpent> for Amount {
    fn from(stored: StoredSpent) -> Self {
        let StoredSpent { calls, input_tokens, output_tokens, nanodollars, .. } = stored;
        Self { calls, input_tokens, output_tokens, nanodollars }
    }
}

/// The reason why a case has no output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredError {
    /// The code from [`CaseError::code`].
    pub code: String,
    /// The message for people.
    pub message: String,
    /// The failed node, or the question's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Whether another attempt may succeed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub retryable: bool,
}

/// One visit to a node.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredStep {
    /// The node name.
    pub node: String,
    /// The node type; empty in results that earlier versions stored.
    #[serde(default, rename = "type")]
    pub node_type: String,
    /// The visit number, from 1.
    pub visit: u32,
    /// The attempt number, from 1.
    pub attempt: u32,
    /// The node's result.
    #[serde(default)]
    pub output: Option<Value>,
    /// The reason for the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<StoredError>,
    /// The prompts that the node read, sorted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts_read: Vec<String>,
    /// Duration in nanoseconds, including the time in which its calls waited.
    #[serde(default)]
    pub duration_ns: u64,
    /// The model input, if input and result can form a demo.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub example: Option<ExampleInputs>,
}

/// A step's inputs and model calls. Stored apart from the result, because the operator may erase it together with the
/// models' replies.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct StepDetails {
    /// The node's fields after filling its templates.
    #[serde(default)]
    pub inputs: Value,
    /// Its answered model calls.
    #[serde(default)]
    pub llm: Vec<SeenCall>,
}

/// Serializes a trace's details as JSON, one entry per step. `None` if every step is without details.
#[must_use]
pub fn details_json(trace: &[CaseStep]) -> Option<String> {
    #[derive(Serialize)]
    struct Details<'a> {
        inputs: &'a Value,
        llm: &'a [SeenCall],
    }
    if trace.iter().all(|step| step.inputs.is_null() && step.llm.is_empty()) {
        return None;
    }
    let details: Vec<Details<'_>> =
        trace.iter().map(|step| Details { inputs: &step.inputs, llm: &step.llm }).collect();
    serde_json::to_string(&details).ok()
}

impl StoredResult {
    /// Builds a stored result from a run and its verdicts.
    #[must_use]
    pub fn from_run(run: &CaseRun, verdicts: Vec<Verdict>, spent: Spent) -> Self {
        Self {
            output: run.output.clone(),
            text: run.text.clone(),
            error: run.error.as_ref().map(StoredError::of_case),
            trace: run.trace.iter().map(StoredStep::from_step).collect(),
            verdicts,
            duration_ns: u64::try_from(run.duration.as_nanos()).unwrap_or(u64::MAX),
            cost: run.cost,
            spent: spent.into(),
        }
    }

    /// The trace, merged with its `details` if stored. Unreadable details are skipped.
    #[must_use]
    pub fn trace_with(&self, details: Option<&str>) -> Vec<CaseStep> {
        let details: Vec<StepDetails> =
            details.and_then(|details| serde_json::from_str(details).ok()).unwrap_or_default();
        let mut details = details.into_iter();
        let steps = self.trace.iter().cloned();
        steps.map(|step| step.into_step(details.next().unwrap_or_default())).collect()
    }

    /// Splits into the case run, without trace details, and the verdicts.
    #[must_use]
    pub fn into_parts(self) -> (CaseRun, Vec<Verdict>) {
        let run = CaseRun {
            output: self.output,
            text: self.text,
            error: self.error.map(StoredError::into_case),
            trace: self.trace.into_iter().map(|step| step.into_step(StepDetails::default())).collect(),
            duration: Duration::from_nanos(self.duration_ns),
            cost: self.cost,
        };
        (run, self.verdicts)
    }
}

impl StoredError {
    fn of_case(error: &CaseError) -> Self {
        let (at, retryable) = match error {
            CaseError::AnswerMissing { key } => (Some(key.clone()), false),
            CaseError::Failed(error) => (error.node.clone(), error.retryable),
            CaseError::Timeout | CaseError::Inputs { .. } | CaseError::Exhausted => (None, false),
        };
        Self { code: error.code().to_owned(), message: error.message(), at, retryable }
    }

    fn into_case(self) -> CaseError {
        let Self { code, message, at, retryable } = self;
        // Each variant is matched by its own code.
        let known = [
            CaseError::Timeout,
            CaseError::AnswerMissing { key: at.clone().unwrap_or_default() },
            CaseError::Inputs { message: message.clone() },
            CaseError::Exhausted,
        ];
        let is_inputs_of_node = code == ErrorCode::RunInputsInvalid.as_str() && at.is_some();
        if let Some(known) = known.into_iter().find(|known| known.code() == code && !is_inputs_of_node) {
            return known;
        }
        let code = ErrorCode::from_code(&code).unwrap_or(ErrorCode::NodeFailed);
        CaseError::Failed(RunError { code, message, node: at, retryable })
    }
}

impl StoredStep {
    fn from_step(step: &CaseStep) -> Self {
        let error = step.error.as_ref().map(|error| StoredError {
            code: error.code.as_str().to_owned(),
            message: error.message.clone(),
            at: error.node.clone(),
            retryable: error.retryable,
        });
        Self {
            node: step.node.clone(),
            node_type: step.node_type.clone(),
            visit: step.visit,
            attempt: step.attempt,
            output: step.output.clone(),
            error,
            prompts_read: step.prompts_read.clone(),
            duration_ns: u64::try_from(step.duration.as_nanos()).unwrap_or(u64::MAX),
            example: step.example.clone(),
        }
    }

    fn into_step(self, details: StepDetails) -> CaseStep {
        let error = self.error.map(|error| NodeError {
            node: error.at,
            retryable: error.retryable,
            ..NodeError::new(
                ErrorCode::from_code(&error.code).unwrap_or(ErrorCode::NodeFailed),
                error.message,
            )
        });
        CaseStep {
            node: self.node,
            node_type: self.node_type,
            visit: self.visit,
            attempt: self.attempt,
            inputs: details.inputs,
            output: self.output,
            error,
            duration: Duration::from_nanos(self.duration_ns),
            prompts_read: self.prompts_read,
            llm: details.llm,
            example: self.example,
        }
    }
}

/// A call reply as its row stores it: `{answer}` or `{embeddings}`.
#[must_use]
pub fn reply_json(reply: &Reply) -> Value {
    match reply {
        Reply::Answer(answer) => json!({"answer": answer}),
        Reply::Embeddings(made) => json!({"embeddings": made}),
    }
}

/// Reads a stored call reply; `None` if its shape is unknown.
#[must_use]
pub fn read_reply(stored: Value) -> Option<Reply> {
    let Value::Object(mut members) = stored else { return None };
    if let Some(answer) = members.shift_remove("answer") {
        return serde_json::from_value(answer).ok().map(Reply::Answer);
    }
    serde_json::from_value(members.shift_remove("embeddings")?).ok().map(Reply::Embeddings)
}

#[cfg(test)]
mod tests {
    use models::{Embeddings, ModelAnswer, Usage};

    use super::*;

    fn run(error: Option<CaseError>) -> CaseRun {
        let step = |error| CaseStep {
            node: "each[0]/ask".into(),
            visit: 2,
            attempt: 1,
            output: Some(json!({"text": "a\u{0}b", "n": 0.1 + 0.2})),
            error,
            prompts_read: vec!["style".into()],
            node_type: "llm".into(),
            duration: Duration::from_nanos(1_234_567),
            inputs: json!({"system": "a\u{0}b"}),
            llm: vec![SeenCall {
                model: "practice/classify".into(),
                messages: json!([{"role": "user", "content": "hi"}]),
                reply: "ho".into(),
                tool_calls: Vec::new(),
                usage: Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() }),
            }],
            example: Some(ExampleInputs { prompts: vec!["style".into()], inputs: json!({"user": "hi"}) }),
        };
        let failed = NodeError::retryable(ErrorCode::ModelUnavailable, "is away");
        CaseRun {
            output: json!([1, null, {"x": 1e-300}]),
            text: "said".into(),
            error,
            trace: vec![step(None), step(Some(failed))],
            duration: Duration::from_nanos(123_456_789),
            cost: Some(7),
        }
    }

    #[test]
    fn stored_results_are_read_back() {
        let failed = |code, node: Option<&str>| {
            CaseError::Failed(RunError {
                code,
                message: "no".into(),
                node: node.map(str::to_owned),
                retryable: true,
            })
        };
        for error in [
            None,
            Some(CaseError::Timeout),
            Some(CaseError::AnswerMissing { key: "ok?".into() }),
            Some(CaseError::Inputs { message: "inputs/x: is required".into() }),
            Some(failed(ErrorCode::ModelUnavailable, Some("ask"))),
            Some(failed(ErrorCode::RunInputsInvalid, Some("outer"))),
            Some(failed(ErrorCode::Internal, None)),
        ] {
            let run = run(error);
            let targets = [("style".to_owned(), "be kinder".to_owned())].into();
            let verdict = Verdict { targets, ..Verdict::from_score(1.0 / 3.0, 0.5).because("short") };
            let verdicts =
                vec![verdict, Verdict::failed("broken"), Verdict { skip: true, ..Verdict::passed(true) }];
            let text =
                serde_json::to_string(&StoredResult::from_run(&run, verdicts.clone(), Spent::default()))
                    .unwrap();
            let read: StoredResult = serde_json::from_str(&text).unwrap();
            let details = details_json(&run.trace);
            assert_eq!(read.trace_with(details.as_deref()), run.trace);
            assert_eq!(read.into_parts(), (run.without_details(), verdicts));
        }
    }

    #[test]
    fn stored_answers_are_read_back() {
        let usage = Some(Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() });
        let answer = Reply::Answer(ModelAnswer { text: "yes".into(), usage, ..ModelAnswer::default() });
        let vectors =
            Reply::Embeddings(Embeddings { vectors: vec![vec![0.1, 1.0 / 3.0]], usage, model: None });
        for reply in [answer, vectors] {
            let text = reply_json(&reply).to_string();
            assert_eq!(read_reply(serde_json::from_str(&text).unwrap()), Some(reply));
        }
        assert_eq!((read_reply(json!(1)), read_reply(json!({"answer": 1}))), (None, None));
    }
}
