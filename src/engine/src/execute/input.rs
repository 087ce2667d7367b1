//! A visit's input: its node's filled fields.

use std::sync::Arc;

use serde_json::Value;

use super::aside::filled;
use super::limit::timed_out;
use super::reads::PromptReads;
use super::visit::Visit;
use crate::NodeError;
use crate::template::functions::ids::Numbering;

impl Visit<'_> {
    /// Fills the node's input, outside the actors if that may take long.
    pub(super) async fn input(&self) -> Result<Value, NodeError> {
        self.input_noting(&PromptReads::default()).await
    }

    /// As [`Self::input_noting`], for at most the node's `timeout_seconds`.
    pub(super) async fn input_in_time(&self, reads: &PromptReads) -> Result<Value, NodeError> {
        let filling = self.input_noting(reads);
        match self.node.common.timeout.filter(|_| !self.node.node.keeps_time()) {
            Some(limit) => self.in_time(limit, filling).await.unwrap_or_else(|| Err(timed_out(limit))),
            None => filling.await,
        }
    }

    /// As [`Self::input`]; records in `reads` the prompts that templates read.
    pub(super) async fn input_noting(&self, reads: &PromptReads) -> Result<Value, NodeError> {
        let node = Arc::clone(self.node);
        let view = reads.recording(self.view);
        let numbering = node.makes_ids.then(|| {
            // Identical in each attempt of the enclosing node.
            let path = self.earlier.last().unwrap_or(&self.path);
            Numbering::new(self.frame.input.run_of(self.step), format!("{path}#{}", self.number))
        });
        filled(self.env.ports.sandbox, self.heavy, view, numbering, move |view| node.node.input(view)).await
    }
}
