//! Runs of apps as a kind of run: workflow runs with an actor kind of their own.

use std::sync::Arc;

use engine::RunInput;
use serde_json::Value;
use store::{LeftRun, StoreError, StoredRun};

use crate::kinds;
use crate::kinds::workflow::{RunEvents, RunOptions, ended_run, run_input, started_run};
use crate::plans::LoadedVersion;
use crate::run::kind::{Kind, KindRow, Outcome, Run};
use crate::run::{End, RunApp, RunPorts, RunWriter};

/// Runs that pages of apps have started.
pub(crate) struct AppRunKind;

impl Kind for AppRunKind {
    type Own = RunOptions;
    type Told = ();
    type Events = RunEvents;
    type Work = RunInput;
    type Opening = ();

    const ROW: KindRow = kinds::APP;

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
        (): &(),
        ports: &RunPorts,
    ) -> Result<Option<(RunInput, ())>, StoreError> {
        let started_at = run.first_start().unwrap_or_else(|| ports.clock.now());
        let ids = (run.id, run.workflow);
        Ok(Some((run_input(ids, &run.trigger, run.inputs.clone(), &run.own, version, started_at), ())))
    }

    fn app(&self, run: &Run<Self>) -> Option<RunApp> {
        run.own.app
    }

    fn events(&self, run: &Run<Self>, (): (), ports: &RunPorts) -> RunEvents {
        RunEvents::new(run.id, Arc::clone(&ports.clock))
    }

    fn open(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        (): (),
        _stopping: bool,
        writer: &RunWriter<RunEvents>,
        _ports: &RunPorts,
    ) {
        writer.with(|events| events.event(started_run(run, version)));
    }

    fn ended(events: &mut RunEvents, outcome: Outcome) -> End {
        ended_run(events, outcome)
    }

    async fn past_input(
        &self,
        stored: &StoredRun,
        inputs: Value,
        version: &Arc<LoadedVersion>,
        ports: &RunPorts,
    ) -> Result<RunInput, StoreError> {
        let started_at = stored.started_at.unwrap_or_else(|| ports.clock.now());
        let ids = (stored.id, stored.workflow_id);
        let options = RunOptions::stored(stored);
        Ok(run_input(ids, &stored.trigger, inputs, &options, version, started_at))
    }
}
