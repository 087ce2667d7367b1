//! Continues a visit from its rows in the journal.

use serde_json::Value;
use wire::ErrorCode;

use super::Failure;
use super::attempt::{Next, Visited};
use super::recorded::RecordedStep;
use super::visit::Visit;
use crate::graph::{OnUnknown, Retry};

impl Visit<'_> {
    /// Returns the outcome of a visit that has finished, and repeats its output: its own in these `rows`, or the same
    /// node's in an earlier attempt of the enclosing node.
    pub(super) async fn recorded_outcome(&self, rows: &[RecordedStep]) -> Option<Visited> {
        if let Some((row, result)) = rows.iter().find_map(|row| Some((row, row.result.clone()?))) {
            self.repeat_output(row, &result).await;
            return Some(Visited { ended_at: row.finished_at, ..Visited::known(Ok(result)) });
        }
        if !rows.is_empty() {
            return None;
        }
        let row = self.finished_earlier().await?;
        let result = match (row.result.clone(), row.error.clone()) {
            (Some(result), _) => {
                self.repeat_output(&row, &result).await;
                Ok(result)
            }
            (None, error) => Err(error.map_or(Failure::Halted, Failure::Failed)),
        };
        Some(Visited { ended_at: row.finished_at, ..Visited::known(result) })
    }

    /// Returns the next attempt's number after the `last` recorded one, or the last attempt itself if it is repeated.
    /// Fails with the visit's outcome if there is no further attempt.
    pub(super) async fn resume<'r>(
        &self,
        last: &'r RecordedStep,
        retry: &Retry,
    ) -> Result<(u32, Option<&'r RecordedStep>), Visited> {
        match &last.error {
            // A person has answered that the attempt is to be repeated.
            Some(error) if error.code == ErrorCode::NodeOutcomeUnknown && error.retryable => {}
            Some(error) => {
                let passed = last.finished_at.map(|at| self.env.ports.clock.now() - at);
                let passed = passed.and_then(|passed| passed.to_std().ok()).unwrap_or_default();
                match self.next(error, last.attempt, retry, passed).await {
                    Next::None => {
                        let failed = Visited::known(Err(Failure::Failed(error.clone())));
                        return Err(Visited { ended_at: last.finished_at, ..failed });
                    }
                    Next::Halted => return Err(Visited::known(Err(Failure::Halted))),
                    Next::Attempt => {}
                }
            }
            None => match self.on_unknown() {
                OnUnknown::Retry => return Ok((last.attempt, Some(last))),
                OnUnknown::Fail => return Err(self.give_up(last, false)),
                OnUnknown::Ask => self.ask_about(last).await?,
            },
        }
        Ok((last.attempt + 1, None))
    }

    /// A resumed run repeats its output from the beginning; listeners know what they have received.
    async fn repeat_output(&self, row: &RecordedStep, result: &Value) {
        let node = &self.node.node;
        // Nothing to repeat without a listener; a container's nested nodes keep their names.
        if !node.streams() || self.slot == usize::MAX {
            return;
        }
        let mut record = self.record(row.attempt);
        record.started_at = row.started_at;
        record.note.clone_from(&row.note);
        if let Err(Failure::Failed(error)) =
            node.say_again(result, &self.call(&record), &self.input().await).await
        {
            tracing::warn!(node = %self.path, %error, "failed to replay the messages of a finished step");
        }
    }
}
