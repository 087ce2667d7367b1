//! The journal of a case, in memory: its trace, and the questions that are answered from the case.

use std::collections::HashMap;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use engine::NodeError;
use engine::ports::{Answer, Answers, Journal, JournalError, StepKey, StepOutcome, StepRecord};
use parking_lot::Mutex;
use serde_json::Value;

use crate::case::Case;

/// One visit of a node, as evaluators see it.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceStep {
    /// The node, as in traces of runs.
    pub node: String,
    /// Which visit, from 1.
    pub visit: u32,
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its result, if it has one.
    pub output: Option<Value>,
    /// Why it failed.
    pub error: Option<NodeError>,
    /// The prompts that it read, sorted.
    pub prompts_read: Vec<String>,
}

/// A question by its attempt.
type Attempt = (String, u32, u32);

/// The journal of one case.
pub(super) struct CaseJournal<'a> {
    case: &'a Case,
    steps: Mutex<Vec<TraceStep>>,
    questions: Mutex<HashMap<Attempt, (String, DateTime<Utc>)>>,
    missing: Mutex<Option<String>>,
}

impl<'a> CaseJournal<'a> {
    pub(super) fn new(case: &'a Case) -> Self {
        Self { case, steps: Mutex::default(), questions: Mutex::default(), missing: Mutex::default() }
    }

    /// The key of a question without an answer.
    pub(super) fn missing(&self) -> Option<String> {
        self.missing.lock().clone()
    }

    pub(super) fn into_trace(self) -> Vec<TraceStep> {
        self.steps.into_inner()
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
            StepOutcome::Succeeded { result, .. } => (serde_json::from_str(&result).ok(), None),
            StepOutcome::Failed { error, .. } => (None, Some(error)),
        };
        let StepRecord { node, visit, attempt, prompts_read, .. } = row;
        self.steps.lock().push(TraceStep { node, visit, attempt, output, error, prompts_read });
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
