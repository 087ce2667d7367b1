//! The input of a visit: its node's fields, filled.

use std::sync::Arc;

use serde_json::Value;

use super::aside::filled;
use super::attempt::Visit;
use super::reads::PromptReads;
use crate::NodeError;
use crate::template::functions::ids;

impl Visit<'_> {
    /// What the node works on; away from the actors where that may take long.
    pub(super) async fn input(&self) -> Result<Value, NodeError> {
        self.input_noting(&PromptReads::default()).await
    }

    /// As [`Self::input`]; `reads` gets the prompts that templates read.
    pub(super) async fn input_noting(&self, reads: &PromptReads) -> Result<Value, NodeError> {
        let node = Arc::clone(self.node);
        let view = reads.recording(self.view);
        let view = match node.makes_ids {
            true => {
                // The same in each attempt of the node around it.
                let path = self.earlier.last().unwrap_or(&self.path);
                ids::scope(&view, self.frame.input.run_of(self.step), &format!("{path}#{}", self.visit))
            }
            false => view,
        };
        // Identifiers are made once: brief work that is done again would make others.
        let heavy = self.heavy || self.node.makes_ids;
        filled(self.env.ports.sandbox, heavy, move || node.node.input(&view)).await
    }
}
