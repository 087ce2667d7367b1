//! Attempts with an unknown outcome after a crash.

use futures_util::future::OptionFuture;
use serde_json::json;
use wire::ErrorCode;

use super::attempt::Visited;
use super::call::ask;
use super::ports::{Question, StepKey, StepOutcome, StepRecord};
use super::recorded::RecordedStep;
use super::visit::Visit;
use super::{Effect, Failure};
use crate::NodeError;
use crate::graph::OnUnknown;

impl Visit<'_> {
    /// How to handle an attempt whose outcome is unknown after a crash.
    pub(super) fn on_unknown(&self) -> OnUnknown {
        let common = &self.node.common;
        // A crash during a wait, or while nested nodes do the work, leaves nothing unknown.
        if matches!(self.node.effect, Effect::Wait | Effect::Nested) {
            return OnUnknown::Retry;
        }
        if let Some(said) = common.on_unknown {
            return said;
        }
        let harmless = common.idempotent || self.node.node.is_idempotent();
        if harmless { OnUnknown::Retry } else { self.node.effect.on_unknown() }
    }

    /// Fails an attempt that may have done its work before a crash and must not do it twice.
    pub(super) fn give_up(&self, last: &RecordedStep, again: bool) -> Visited {
        let code = ErrorCode::NodeOutcomeUnknown;
        let error = if again {
            NodeError::retryable(
                code,
                "the service stopped while the step was in progress; it is repeated, as requested",
            )
        } else {
            NodeError::new(
                code,
                "the service stopped while the step was in progress, and the step must not be repeated",
            )
        };
        let finished_at = self.time();
        let record = StepRecord {
            begun: true,
            started_at: last.started_at,
            note: last.note.clone(),
            outcome: StepOutcome::Failed { error: error.clone(), finished_at },
            ..self.record(last.attempt)
        };
        let receipt = self.env.ports.journal.record(record);
        Visited { result: Err(Failure::Failed(error)), receipt: Some(receipt), ended_at: Some(finished_at) }
    }

    /// Asks a person whether to repeat an attempt with an unknown outcome; `Ok` if yes.
    pub(super) async fn ask_about(&self, last: &RecordedStep) -> Result<(), Visited> {
        let question = Question {
            key: format!("unknown:{}", self.path),
            message: Some(format!(
                "The service stopped while '{}' was in progress, and it is unknown whether it was completed. \
                 Repeat it?",
                self.path
            )),
            schema: Some(json!({"enum": ["retry", "fail"]})),
            audience: Vec::new(),
            expires_at: None,
            item: None,
            continues_without: true,
        };
        let record = StepRecord {
            begun: true,
            started_at: last.started_at,
            note: last.note.clone(),
            question: Some(question),
            ..self.record(last.attempt)
        };
        let lost = |error: String| Visited::known(Err(Failure::Lost(error)));
        let ports = self.env.ports;
        ports.journal.record(record).await.map_err(|error| lost(error.to_string()))?;
        let _waits = ports.activity.waits(None);
        let step = StepKey { node: &self.path, visit: self.number, attempt: last.attempt };
        let answer = tokio::select! {
            biased;
            () = self.halt.cancelled() => return Err(Visited::known(Err(Failure::Halted))),
            answer = ask(ports, step, None) => answer.map_err(|failure| Visited::known(Err(failure)))?,
        };
        let again = answer.is_some_and(|answer| answer.value == "retry");
        let mut given_up = self.give_up(last, again);
        if !again {
            return Err(given_up);
        }
        // The next attempt depends on this one's row.
        match OptionFuture::from(given_up.receipt.take()).await {
            Some(Err(error)) => Err(lost(error.to_string())),
            _ => Ok(()),
        }
    }
}
