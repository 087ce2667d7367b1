//! Events of trainings and evaluations, and rows that are committed with them. Pure except for time.

use std::sync::Arc;

use kernel::Clock;
use store::batch::{
    Batch, TrainingCallRow, TrainingCandidateRow, TrainingCaseRow, TrainingMarkRow, TrainingStateRow,
};
use uuid::Uuid;
use wire::{TrainingEvent, TrainingFrame, TrainingResult};

use crate::run::{EventWriter, Frames};
use crate::text::{json as text_of, timestamp};

/// The constant `node` in these events.
const NODE: &str = "trainer";

/// Collects events and rows for a common handover.
pub(crate) struct TrainingEvents {
    run: Uuid,
    clock: Arc<dyn Clock>,
    events: Vec<(TrainingEvent, String)>,
    rows: Batch,
    /// The result, which comes right before the end.
    result: Option<TrainingEvent>,
    /// The result so far, for a run that is cut off.
    so_far: Option<Box<TrainingResult>>,
    /// Whether the last event was added.
    is_over: bool,
}

impl TrainingEvents {
    pub(super) fn new(run: Uuid, clock: Arc<dyn Clock>) -> Self {
        Self {
            run,
            clock,
            events: Vec::new(),
            rows: Batch::default(),
            result: None,
            so_far: None,
            is_over: false,
        }
    }

    pub(super) fn event(&mut self, event: TrainingEvent) {
        if !self.is_over {
            self.events.push((event, timestamp(self.clock.now())));
        }
    }

    /// Marks an action as done, so that a resumed run does not repeat it.
    pub(super) fn mark(&mut self, mark: String) {
        self.rows.training_marks.push(TrainingMarkRow { run_id: self.run, mark, event: None });
    }

    /// Adds an event that the report needs, with its mark.
    pub(super) fn reported(&mut self, mark: String, event: TrainingEvent) {
        let text = Some(text_of(&event));
        self.rows.training_marks.push(TrainingMarkRow { run_id: self.run, mark, event: text });
        self.event(event);
    }

    pub(super) fn call(&mut self, row: TrainingCallRow) {
        self.rows.training_calls.push(row);
    }

    pub(super) fn case(&mut self, row: TrainingCaseRow) {
        self.rows.training_cases.push(row);
    }

    pub(super) fn candidate(&mut self, row: TrainingCandidateRow) {
        self.rows.training_candidates.push(row);
    }

    /// Stores the run's progress.
    pub(super) fn state(&mut self, state: String) {
        let row = TrainingStateRow { run_id: self.run, state: Some(state), in_flight: None };
        self.rows.training_states.push(row);
    }

    /// Stores the number of model requests in flight.
    pub(super) fn in_flight(&mut self, requests: u32) {
        let in_flight = Some(i32::try_from(requests).unwrap_or(i32::MAX));
        self.rows.training_states.push(TrainingStateRow { run_id: self.run, state: None, in_flight });
    }

    pub(super) fn result(&mut self, event: TrainingEvent) {
        self.result = Some(event);
    }

    pub(super) fn so_far(&mut self, result: TrainingResult) {
        self.so_far = Some(Box::new(result));
    }

    /// The result before the last event. For a training that is cut off: the result so far.
    pub(super) fn take_result(&mut self, is_cut: bool) -> Option<TrainingEvent> {
        let so_far = self.so_far.take().filter(|_| is_cut).map(TrainingEvent::TrainingResult);
        self.result.take().or(so_far)
    }

    /// Adds the last event.
    pub(super) fn last(&mut self, event: TrainingEvent) {
        self.event(event);
        self.is_over = true;
    }
}

/// Output by case nodes is not shown to readers.
impl EventWriter for TrainingEvents {
    fn write(&mut self, frames: &mut Frames, batch: &mut Batch) {
        batch.append(std::mem::take(&mut self.rows));
        for (happened, at) in self.events.drain(..) {
            let event = happened.kind().to_owned();
            let (node, run_id, seq) = (NODE.to_owned(), self.run.to_string(), frames.next_seq());
            frames.push(&TrainingFrame { happened, node, event, run_id, seq, at });
        }
    }
}
