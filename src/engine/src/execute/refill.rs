//! Rebuilds the inputs of recorded steps from their run's journal: nothing is executed or stored.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use super::aside::aside;
use super::attempt::Visited;
use super::budget::ExecutionBudget;
use super::frame::{Env, Frame};
use super::output::StepOutput;
use super::ports::{Nowhere, Ports, StepRecord};
use super::reads::PromptReads;
use super::recorded::{Recorded, RecordedStep};
use super::visit::Visit;
use super::{Activity, Effect, Failure, RunInput, steps};
use crate::Plan;
use crate::canonical::{is_digest_of, text_digest};
use crate::redact::Redactor;

/// A visit's rebuilt input.
#[derive(Debug, Clone, PartialEq)]
pub struct FilledInput {
    /// The node, as in [`RecordedStep::node`].
    pub node: String,
    /// The visit, from 1.
    pub visit: u32,
    /// SHA-256 of the input, as recorded in the journal.
    pub digest: [u8; 32],
    /// The input, without secrets that the run has used.
    pub input: Value,
    /// The config prompts that its templates have read, sorted.
    pub prompts_read: Vec<String>,
}

/// JSON bytes after which inputs are left out.
const BYTES: usize = 16 << 20;

/// The requested visits, and the inputs found so far.
pub(super) struct Refill {
    wanted: HashSet<(String, u32)>,
    found: Mutex<Vec<FilledInput>>,
    bytes: AtomicUsize,
    filling: Semaphore,
}

/// Rebuilds the inputs of recorded visits. Leaves out an input whose digest differs from the journal's, such as that
/// of a chat turn whose thread has changed since, and inputs beyond 16 MiB. Uses only workflows, credentials, the
/// clock and randomness from `ports`.
pub async fn refill(
    plan: &Plan,
    input: RunInput,
    recorded: Vec<RecordedStep>,
    wanted: HashSet<(String, u32)>,
    ports: Ports<'_>,
) -> Vec<FilledInput> {
    let activity = Activity::default();
    let ports = Ports { journal: &Nowhere, output: &Nowhere, activity: &activity, ..ports };
    let now = input.life(1).map_or_else(|| ports.clock.now(), |life| life.accepted_at);
    let env = Env {
        ports,
        budget: ExecutionBudget::new(&recorded),
        recorded: Recorded::new(recorded),
        redactor: Redactor::default(),
        noticed: Mutex::default(),
        missing_answer: Mutex::default(),
        warning: Mutex::default(),
        refill: Some(Refill {
            wanted,
            found: Mutex::default(),
            bytes: AtomicUsize::new(0),
            filling: Semaphore::new(1),
        }),
    };
    let frame = Frame::outermost(now, input);
    let root = StepOutput::root(ports.output);
    // Stops where the journal ends.
    let _ = steps::run(&env, plan, &frame, &root, 0).await;
    let known = env.redactor.known();
    let found = env.refill.map(|refill| refill.found.into_inner()).unwrap_or_default();
    let redacting = aside(!known.is_empty(), move || {
        let redacted =
            found.into_iter().map(|found| FilledInput { input: known.value(found.input), ..found });
        Ok(redacted.collect())
    });
    redacting.await.unwrap_or_default()
}

impl Visit<'_> {
    /// As [`Self::run`], from the journal alone.
    pub(super) async fn refilled(&self, refill: &Refill) -> Visited {
        // Yields: a loop over rows alone would never let other tasks run.
        tokio::task::consume_budget().await;
        let rows = self.env.recorded.attempts(&self.path, self.number);
        let reused = if rows.is_empty() { self.finished_earlier().await } else { None };
        let key = (self.path.clone(), self.number);
        let is_container = self.node.effect == Effect::Nested;
        let is_wanted = !rows.is_empty() && (is_container || refill.wanted.contains(&key));
        if (is_wanted || (is_container && self.has_open_attempt(rows)))
            && let Err(stopped) = self.fill_again(refill, rows, is_container).await
        {
            return Visited::known(Err(stopped));
        }
        let finished = rows.iter().find(|row| row.result.is_some()).or(rows.last()).or(reused.as_ref());
        let result = match finished.map(|row| (row.result.clone(), row.error.clone())) {
            Some((Some(result), _)) => Ok(result),
            Some((None, Some(error))) => Err(Failure::Failed(error)),
            _ => Err(Failure::Halted),
        };
        let ended_at = finished.and_then(|row| row.finished_at);
        Visited { ended_at, ..Visited::known(result) }
    }

    /// The attempt after the recorded ones. A container's attempt is not recorded before it ends, and the run may end
    /// first.
    fn open_attempt(&self, rows: &[RecordedStep]) -> StepRecord {
        self.record(rows.last().map_or(1, |row| row.attempt + 1))
    }

    fn has_open_attempt(&self, rows: &[RecordedStep]) -> bool {
        let record = self.open_attempt(rows);
        self.env.recorded.has_inside(&self.call(&record).inside())
    }

    async fn fill_again(
        &self,
        refill: &Refill,
        rows: &[RecordedStep],
        is_container: bool,
    ) -> Result<(), Failure> {
        // One at a time: each may have the maximum size.
        let filling = refill.filling.acquire().await;
        let reads = PromptReads::default();
        let Ok(input) = self.input_noting(&reads).await else { return Ok(()) };
        let (digest, bytes) = text_digest(&input);
        let mut digests = rows.iter().map(|row| row.input_digest);
        let key = (self.path.clone(), self.number);
        let theirs = digests.find(|recorded| is_digest_of(*recorded, &input, digest));
        if let Some(digest) = theirs.filter(|_| refill.wanted.contains(&key))
            && refill.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= BYTES
        {
            let (node, visit) = key;
            let found =
                FilledInput { node, visit, digest, input: input.clone(), prompts_read: reads.names() };
            refill.found.lock().push(found);
        }
        drop(filling);
        if !is_container {
            return Ok(());
        }
        let _input = self.env.budget.input(&self.path, bytes)?;
        for row in rows {
            let mut record = self.record(row.attempt);
            record.started_at = row.started_at;
            record.note.clone_from(&row.note);
            // Runs only for its nested nodes; its result is in its row.
            let _ = self.node.node.run(input.clone(), &self.call(&record)).await;
        }
        if self.has_open_attempt(rows) {
            let record = self.open_attempt(rows);
            let _ = self.node.node.run(input, &self.call(&record)).await;
        }
        Ok(())
    }
}
