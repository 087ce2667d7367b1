//! A workflow run's events for its readers. Pure except for time.

use std::collections::HashSet;
use std::sync::Arc;

use engine::ports::{ImmediateEvent, Question, StepOutcome, StepRecord};
use kernel::Clock;
use serde_json::Value;
use store::batch::Batch;
use uuid::Uuid;
use wire::{RunEvent, RunFrame, RunProblem, WaitKind, WaitsFor};

use crate::run::{EventWriter, Frames, Urgency};
use crate::text::{stored_json, timestamp};

/// Bytes of text that are handed over without waiting for more.
const COALESCE_BYTES: usize = 512;
/// Maximum bytes of a result in an event.
const LARGEST_RESULT: usize = 64 << 10;

/// A workflow run's event writer.
pub(crate) struct RunEvents {
    run: String,
    clock: Arc<dyn Clock>,
    /// Nodes that have started in this life. Output by other nodes was sent in an earlier life.
    begun: HashSet<String>,
    /// Pending events.
    events: Vec<(RunEvent, String)>,
}

impl RunEvents {
    pub(super) fn new(run: Uuid, clock: Arc<dyn Clock>) -> Self {
        Self { run: run.to_string(), clock, begun: HashSet::new(), events: Vec::new() }
    }

    /// Adds an event after all others.
    pub(super) fn event(&mut self, event: RunEvent) {
        self.events.push((event, timestamp(self.clock.now())));
    }
}

fn waits_for(question: &Question) -> WaitsFor {
    WaitsFor {
        key: question.key.clone(),
        kind: WaitKind::from_item(question.item.as_ref()),
        item_id: None,
        message: question.message.clone(),
        schema: question.schema.clone(),
        audience: question.audience.clone(),
        expires_at: question.expires_at.map(timestamp),
    }
}

impl EventWriter for RunEvents {
    fn begins(&mut self, row: &StepRecord) -> Urgency {
        self.begun.insert(row.node.clone());
        self.event(RunEvent::StepStarted { node: row.node.clone(), visit: row.visit, attempt: row.attempt });
        Urgency::Soon
    }

    fn records(&mut self, row: &StepRecord) {
        let (node, visit, attempt) = (row.node.clone(), row.visit, row.attempt);
        match &row.outcome {
            StepOutcome::Started => {
                if let Some(question) = &row.question {
                    self.event(RunEvent::RunWaiting(waits_for(question)));
                }
            }
            StepOutcome::Succeeded { result, .. } => {
                let large = result.len() > LARGEST_RESULT;
                let value = if large { Value::Null } else { stored_json(result).unwrap_or_default() };
                let result_bytes = large.then_some(result.len());
                self.event(RunEvent::StepCompleted { node, visit, attempt, result: value, result_bytes });
            }
            StepOutcome::Failed { error, .. } => {
                let code = error.code.as_str().to_owned();
                let error = RunProblem {
                    code,
                    message: error.message.clone(),
                    node: Some(error.node.clone().unwrap_or_else(|| node.clone())),
                };
                self.event(RunEvent::StepFailed { node, visit, attempt, error });
            }
        }
    }

    fn text(&mut self, node: &str, piece: &str) -> Urgency {
        if !self.begun.contains(node) {
            return Urgency::Whenever;
        }
        if let Some((RunEvent::OutputDelta { node: last, text }, _)) = self.events.last_mut()
            && last == node
        {
            text.push_str(piece);
            return if text.len() >= COALESCE_BYTES { Urgency::Now } else { Urgency::Soon };
        }
        self.event(RunEvent::OutputDelta { node: node.to_owned(), text: piece.to_owned() });
        Urgency::Soon
    }

    fn immediate(&mut self, event: ImmediateEvent) -> Urgency {
        match event {
            ImmediateEvent::Progress(text) => self.event(RunEvent::Progress { text }),
            ImmediateEvent::Notice { level, message, title } => {
                self.event(RunEvent::Notice { level, message, title });
            }
            // Only a chat has a page.
            ImmediateEvent::Effect { .. } => return Urgency::Whenever,
        }
        Urgency::Soon
    }

    fn write(&mut self, frames: &mut Frames, _batch: &mut Batch) {
        for (event, at) in self.events.drain(..) {
            frames.push(&RunFrame { event, run_id: self.run.clone(), seq: frames.next_seq(), at });
        }
    }
}
