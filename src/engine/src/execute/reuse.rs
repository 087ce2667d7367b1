//! What finished inside a failed attempt is not run again inside the next one: an agent's tools, the items of a
//! `for_each`.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use parking_lot::Mutex;
use serde_json::Value;

use super::Effect;
use super::attempt::Visit;
use super::ports::StepRecord;
use super::recorded::RecordedStep;
use crate::NodeError;
use crate::canonical::{is_digest_of, text_digest};

/// Finished rows inside a visit's attempts, by their names in the journal.
pub(super) type Finished = Mutex<HashMap<String, RecordedStep>>;

impl Visit<'_> {
    /// Returns the row of this node inside an earlier attempt of the node around it, if that was given the same, and
    /// succeeded or failed for good where that counts.
    pub(super) async fn finished_earlier(&self) -> Option<RecordedStep> {
        // To say again what a container streamed, its nodes would have to run again.
        let streams = self.slot != usize::MAX && self.node.node.streams();
        if self.earlier.is_empty() || (streams && self.node.effect == Effect::Nested) {
            return None;
        }
        let input = self.input().await.ok()?;
        let (digest, _) = text_digest(&input);
        self.earlier.iter().find_map(|path| {
            let kept = self.keeps.and_then(|kept| kept.lock().get(path).cloned());
            let rows = self.env.recorded.of(path, self.visit);
            let failed = || rows.last().filter(|row| self.failure_counts && row.error.is_some());
            let row =
                kept.or_else(|| rows.iter().find(|row| row.result.is_some()).or_else(failed).cloned())?;
            is_digest_of(row.input_digest, &input, digest).then_some(row)
        })
    }

    /// Keeps a result for the next attempt of the node around this one; a failure if it counts.
    pub(super) fn keep_finished(
        &self,
        record: &StepRecord,
        result: Result<&Value, &NodeError>,
        finished_at: DateTime<Utc>,
    ) {
        let Some(kept) = self.keeps.filter(|_| result.is_ok() || self.failure_counts) else { return };
        let row = RecordedStep {
            node: self.path.clone(),
            visit: self.visit,
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
