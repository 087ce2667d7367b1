//! A run kind for tests, and an example of the cost of a new kind: this folder and a row in the table. It counts the
//! questions that its workflow asks people, and is parked while it waits for answers.

mod tests;

use engine::RunInput;
use engine::ports::{StepOutcome, StepRecord};
use serde_json::{Value, json};
use store::batch::{Batch, QueueRow, RunRow, StreamRow};
use store::{LeftRun, RunState, StoreError};
use uuid::Uuid;
use wire::ErrorCode;
use wire::sse;

use crate::kinds;
use crate::plans::LoadedVersion;
use crate::run::drive::{ended_with, succeeded};
use crate::run::kind::{Kind, KindRow, PastRun, Run, RunOutcome};
use crate::run::start::StartRows;
use crate::run::{End, EventWriter, Frames, RunPorts, plain_input, whole};

pub(super) struct Counter;

/// Number of questions that a run has asked, and the events not yet written.
pub(crate) struct Counts {
    questions: usize,
    events: Vec<Value>,
}

impl Kind for Counter {
    type Data = ();
    type ReaderState = usize;
    type Events = Counts;
    type Work = RunInput;
    type Opening = ();

    const ROW: KindRow = kinds::COUNTER;

    fn own(&self, _left: &LeftRun) -> Result<(), String> {
        Ok(())
    }

    fn fresh(&self, _run: &Run<Self>) -> usize {
        0
    }

    async fn told(
        &self,
        run: &Run<Self>,
        _stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, usize), StoreError> {
        let rows = ports.store.frames_after(run.stream, 0, 1_000).await?;
        let questions = rows.iter().map(|row| sse::data(&row.frames).count()).sum();
        Ok((rows.last().map_or(0, |row| row.last_seq), questions))
    }

    async fn input(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        _told: &usize,
        _ports: &RunPorts,
    ) -> Result<Option<(RunInput, ())>, StoreError> {
        Ok(Some((plain_input(run.id, run.workflow, &run.trigger, run.inputs.clone(), version), ())))
    }

    fn events(&self, _run: &Run<Self>, questions: usize, _ports: &RunPorts) -> Counts {
        Counts { questions, events: Vec::new() }
    }

    fn ended(events: &mut Counts, outcome: RunOutcome) -> End {
        events.events.push(json!({"type": "counted", "questions": events.questions}));
        match outcome {
            RunOutcome::Succeeded(completed) => succeeded(&completed),
            RunOutcome::Failed(error) => ended_with(RunState::Failed, &error),
            RunOutcome::Stopped | RunOutcome::Abandoned => {
                ended_with(RunState::Cancelled, &whole(ErrorCode::RunCancelled))
            }
        }
    }

    async fn past_input(&self, past: PastRun<'_>, _ports: &RunPorts) -> Result<RunInput, StoreError> {
        let PastRun { stored, inputs, version } = past;
        Ok(plain_input(stored.id, stored.workflow_id, &stored.trigger, inputs, version))
    }
}

impl EventWriter for Counts {
    fn records(&mut self, row: &StepRecord) {
        if matches!(row.outcome, StepOutcome::Started) && row.question.is_some() {
            self.questions += 1;
            self.events.push(json!({"type": "asked", "node": row.node, "number": self.questions}));
        }
    }

    fn write(&mut self, frames: &mut Frames, _batch: &mut Batch) {
        self.events.drain(..).for_each(|event| frames.push(&event));
    }
}

/// A run that starts in the queue.
fn rows(workspace: Uuid, version: &LoadedVersion, id: Uuid, ports: &RunPorts) -> StartRows {
    let (now, workflow_id) = (ports.clock.now(), version.workflow);
    let run = RunRow {
        id,
        workspace_id: workspace,
        workflow_id,
        version_id: version.id,
        trigger: "counter",
        thread_id: None,
        stream_id: Some(id),
        inputs: "{}".to_owned(),
        options: None,
        created_at: now,
    };
    let batch = Batch {
        runs: vec![run],
        streams: vec![StreamRow { id, run_id: id, workflow_id, thread_id: None, dialect: None }],
        queued: vec![QueueRow { run_id: id, workflow_id, turn: false, due_at: Some(now) }],
        ..Batch::default()
    };
    StartRows { workspace, stream: id, batch, events: None, queued: true }
}
