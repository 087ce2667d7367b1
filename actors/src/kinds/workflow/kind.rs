//! Workflow runs as a run kind.

use std::sync::Arc;

use engine::RunInput;
use store::{LeftRun, RunState, StoreError};
use wire::{ErrorCode, RunEvent};

use super::events::RunEvents;
use super::input::run_input;
use super::start::RunOptions;
use crate::kinds;
use crate::plans::LoadedVersion;
use crate::run::drive::{ended_with, succeeded};
use crate::run::kind::{Kind, KindRow, PastRun, Run, RunOutcome};
use crate::run::{End, RunApp, RunPorts, RunWriter, run_problem, whole};

/// The kind for workflow runs outside chats; runs started by app pages are supervised separately.
pub(crate) struct WorkflowRuns<const OF_APPS: bool>;

impl<const OF_APPS: bool> Kind for WorkflowRuns<OF_APPS> {
    type Data = RunOptions;
    type ReaderState = ();
    type Events = RunEvents;
    type Work = RunInput;
    type Opening = ();

    const ROW: KindRow = if OF_APPS { kinds::APP } else { kinds::WORKFLOW };

    fn own(&self, left: &LeftRun) -> Result<RunOptions, String> {
        Ok(RunOptions::stored(&left.run))
    }

    fn fresh(&self, _run: &Run<Self>) {}

    async fn told(
        &self,
        run: &Run<Self>,
        _stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, ()), StoreError> {
        Ok((ports.store.last_seq(run.id).await?, ()))
    }

    async fn input(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        _told: &Self::ReaderState,
        ports: &RunPorts,
    ) -> Result<Option<(RunInput, ())>, StoreError> {
        let started_at = run.first_start().unwrap_or_else(|| ports.clock.now());
        let inputs = run.inputs.clone();
        let input = run_input(run.id, run.workflow, &run.trigger, inputs, &run.own, version, started_at);
        Ok(Some((input, ())))
    }

    fn app(&self, run: &Run<Self>) -> Option<RunApp> {
        run.own.app
    }

    fn events(&self, run: &Run<Self>, _told: Self::ReaderState, ports: &RunPorts) -> RunEvents {
        RunEvents::new(run.id, Arc::clone(&ports.clock))
    }

    fn open(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        _opening: Self::Opening,
        _stopping: bool,
        writer: &RunWriter<RunEvents>,
        _ports: &RunPorts,
    ) {
        writer.with(|events| events.event(started_run(run, version)));
    }

    fn ended(events: &mut RunEvents, outcome: RunOutcome) -> End {
        ended_run(events, outcome)
    }

    async fn past_input(&self, past: PastRun<'_>, ports: &RunPorts) -> Result<RunInput, StoreError> {
        let PastRun { stored, inputs, version } = past;
        let started_at = stored.started_at.unwrap_or_else(|| ports.clock.now());
        let (run, workflow) = (stored.id, stored.workflow_id);
        let options = RunOptions::stored(stored);
        Ok(run_input(run, workflow, &stored.trigger, inputs, &options, version, started_at))
    }
}

/// A life's first event.
fn started_run<K: Kind>(run: &Run<K>, version: &LoadedVersion) -> RunEvent {
    RunEvent::RunStarted {
        workflow_id: run.workflow.to_string(),
        version: version.number,
        resumed: run.first_start().is_some(),
    }
}

/// The end of a run, with its event.
fn ended_run(events: &mut RunEvents, outcome: RunOutcome) -> End {
    let (end, event) = match outcome {
        RunOutcome::Succeeded(completed) => {
            let (end, warning) = (succeeded(&completed), completed.warning.as_ref().map(run_problem));
            (end, RunEvent::RunCompleted { output: completed.output, warning })
        }
        RunOutcome::Failed(error) => {
            (ended_with(RunState::Failed, &error), RunEvent::RunFailed { error: run_problem(&error) })
        }
        RunOutcome::Stopped | RunOutcome::Abandoned => {
            let error = whole(ErrorCode::RunCancelled);
            (ended_with(RunState::Cancelled, &error), RunEvent::RunCancelled { error: run_problem(&error) })
        }
    };
    events.event(event);
    end
}
