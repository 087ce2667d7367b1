//! Workflows inside a run. The note in the node's journal row keeps their warnings across a restart.

use serde_json::{Value, json};
use wire::ErrorCode;

use super::call::Call;
use super::frame::Frame;
use super::ports::{Resolved, StepRecord};
use super::recorded::RecordedStep;
use super::{Completed, Failure, GraphStop, RunInfo, RunInput, steps};
use crate::{NodeError, RunError};

/// Maximum nesting depth of workflows.
const DEPTH: u32 = 16;
/// The note's member.
const WARNING: &str = "warning";

impl Call<'_> {
    /// Runs another workflow inside this node and returns its output.
    pub(crate) async fn run_workflow(&self, workflow: &Resolved, inputs: Value) -> Result<Value, Failure> {
        if self.visit.frame.depth >= DEPTH {
            let message = format!("more than {DEPTH} nested workflows");
            return Err(NodeError::new(ErrorCode::RunRecursionLimit, message).into());
        }
        let problems = workflow.plan.check_inputs(&inputs);
        if let Some(first) = problems.first() {
            let message = format!("inputs{}: {}", first.pointer, first.message);
            return Err(NodeError::new(ErrorCode::RunInputsInvalid, message).into());
        }
        let outer = &self.visit.frame.input;
        let frame = Frame {
            prefix: format!("{}/", self.inside()),
            step: Some(self.visit.step),
            depth: self.visit.frame.depth + 1,
            now: self.visit.now,
            halt: self.visit.halt.child_token(),
            tolerated: self.visit.continues_after_failure(),
            input: RunInput {
                inputs,
                messages: outer.messages_at(self.visit.step).to_vec(),
                config: (*workflow.config).clone(),
                run: RunInfo {
                    workflow_id: workflow.workflow.clone(),
                    trigger: "workflow".to_owned(),
                    ..outer.run.clone()
                },
                lives: outer.lives_without_messages(),
                deadline: None,
                patch: None,
            },
        };
        let ended =
            steps::run(self.visit.env, &workflow.plan, &frame, self.visit.output, self.visit.slot).await;
        let Completed { output, warning } = ended.map_err(|stop| match stop {
            GraphStop::Halted => Failure::Halted,
            GraphStop::Failed(RunError { code, message, node, retryable }) => {
                Failure::Failed(NodeError { node, retryable, ..NodeError::new(code, message) })
            }
        })?;
        *self.warning.lock() = warning;
        Ok(output)
    }

    /// Stores a nested workflow's warning with the node's row.
    pub(super) fn keep_warning(&self, record: &mut StepRecord) {
        let Some(warning) = self.warning.lock().take() else { return };
        let note = record.note.get_or_insert_with(|| json!({}));
        if let Some(members) = note.as_object_mut() {
            members.insert(WARNING.to_owned(), json!({"message": warning.message, "node": warning.node}));
        }
        self.visit.env.warning.lock().get_or_insert(warning);
    }
}

/// Returns the first warning from before a restart.
pub(super) fn recorded_warning(rows: &[RecordedStep]) -> Option<RunError> {
    rows.iter().filter(|row| row.result.is_some()).find_map(|row| {
        let warning = row.note.as_ref()?.get(WARNING)?;
        let text = |name: &str| warning.get(name).and_then(Value::as_str).map(str::to_owned);
        Some(RunError { node: text("node"), ..RunError::whole(ErrorCode::RunIncomplete, text("message")?) })
    })
}
