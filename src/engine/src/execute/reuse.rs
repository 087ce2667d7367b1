//! Reuses results that finished inside a failed attempt, so that the next attempt does not run them again: an agent's
//! tools, `for_each` items.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Effect;
use super::ports::StepRecord;
use super::recorded::RecordedStep;
use super::visit::Visit;
use crate::NodeError;
use crate::canonical::{is_digest_of, text_digest};

impl Visit<'_> {
    /// Returns this node's row from an earlier attempt of the enclosing node, if its input was the same and it
    /// succeeded, or failed for good where failures count.
    pub(super) async fn finished_earlier(&self) -> Option<RecordedStep> {
        // Repeating a container's streamed output would mean running its nodes again.
        let streams = self.slot != usize::MAX && self.node.node.streams();
        if self.earlier.is_empty() || (streams && self.node.effect == Effect::Nested) {
            return None;
        }
        let input = self.input().await.ok()?;
        let (digest, _) = text_digest(&input);
        self.earlier.iter().find_map(|path| {
            let kept = self.keeps.and_then(|kept| kept.lock().get(path).cloned());
            let rows = self.env.recorded.attempts(path, self.number);
            let failed = || rows.last().filter(|row| self.failure_counts && row.error.is_some());
            let row =
                kept.or_else(|| rows.iter().find(|row| row.result.is_some()).or_else(failed).cloned())?;
            is_digest_of(row.input_digest, &input, digest).then_some(row)
        })
    }

    /// Keeps a result for the enclosing node's next attempt; a failure only if it counts.
    pub(super) fn keep_finished(
        &self,
        record: &StepRecord,
        result: Result<&Value, &NodeError>,
        finished_at: DateTime<Utc>,
    ) {
        let Some(kept) = self.keeps.filter(|_| result.is_ok() || self.failure_counts) else { return };
        let row = RecordedStep {
            node: self.path.clone(),
            visit: self.number,
            attempt: record.attempt,
            input_digest: record.input_digest,
            result: result.ok().cloned(),
            error: result.err().cloned(),
            note: record.note.clone(),
            started_at: record.started_at,
            finished_at: Some(finished_at),
        };
        kept.lock().insert(self.path.clone(), row);
    }
}
