//! Visits with a mocked result: their node is not executed.

use serde_json::Value;

use super::Effect;
use super::attempt::Visited;
use super::ports::StepOutcome;
use super::reads::PromptReads;
use super::visit::Visit;
use crate::NodeError;

impl Visit<'_> {
    /// Returns the result that replaces this visit's execution.
    pub(super) fn mock(&self) -> Option<Value> {
        let rehearsal = self.env.ports.rehearsal.filter(|_| !self.node.node.names_its_entries())?;
        rehearsal.mock(&self.path, self.number)
    }

    /// Fails if the node would change external state where nothing may be sent.
    pub(super) fn may_run(&self) -> Result<(), NodeError> {
        let is_sent = self.node.effect == Effect::Outbound && !self.node.node.only_reads();
        match self.env.ports.rehearsal {
            Some(rehearsal) if is_sent && !rehearsal.may_send() => {
                let message = format!("'{}' would send something, and has no result in mocks", self.path);
                Err(NodeError::failed(message))
            }
            _ => Ok(()),
        }
    }

    /// Records the result as a single attempt's, and outputs its text if the node would have.
    pub(super) async fn mocked(&self, result: Value) -> Visited {
        let mut record = self.record(1);
        let reads = PromptReads::default();
        // If the node could not run at all, the input is unknown.
        if let Ok(input) = self.input_noting(&reads).await {
            let (digest, bytes) = crate::canonical::text_digest(&input);
            record.input_digest = digest;
            record.note_inputs(&input, bytes);
        }
        record.prompts_read = reads.names();
        let text = result.get("text").and_then(Value::as_str);
        if let Some(text) = text.filter(|_| self.node.node.streams()) {
            self.call(&record).say(text).await;
        }
        let finished_at = self.time();
        self.finish_seen(&mut record, self.env.ports.clock.monotonic()).await;
        record.outcome = StepOutcome::Succeeded { result: result.to_string(), finished_at };
        let receipt = Some(self.env.ports.journal.record(record));
        Visited { result: Ok(result), receipt, ended_at: Some(finished_at) }
    }
}
