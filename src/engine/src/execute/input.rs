//! The input of a visit: its node's fields, filled.

use std::sync::Arc;

use serde_json::Value;

use super::aside::filled;
use super::attempt::Visit;
use super::reads::PromptReads;
use crate::NodeError;
use crate::template::functions::ids::Numbering;

impl Visit<'_> {
    /// What the node works on; away from the actors where that may take long.
    pub(super) async fn input(&self) -> Result<Value, NodeError> {
        self.input_noting(&PromptReads::default()).await
    }

    /// As [`Self::input`]; `reads` gets the prompts that templates read.
    pub(super) async fn input_noting(&self, reads: &PromptReads) -> Result<Value, NodeError> {
        let node = Arc::clone(self.node);
        let view = reads.recording(self.view);
        let numbering = node.makes_ids.then(|| {
            // The same in each attempt of the node around it.
            let path = self.earlier.last().unwrap_or(&self.path);
            Numbering::new(self.frame.input.run_of(self.step), format!("{path}#{}", self.visit))
        });
        filled(self.env.ports.sandbox, self.heavy, view, numbering, move |view| node.node.input(view)).await
    }
}
