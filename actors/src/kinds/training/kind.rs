//! Trainings and evaluations as a run kind.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::RunInput;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use store::{LeftRun, RunState, StoreError};
use tokio_util::sync::CancellationToken;
use training::calls::Endpoints;
use uuid::Uuid;
use wire::{ErrorCode, TrainingEvent, TrainingKind, TrainingStarted};

use super::decided::Decided;
use super::events::TrainingEvents;
use super::gate::GATE;
use super::halt::{Interruption, Pauses};
use super::session::StoredStart;
use super::slots::{Slot, Slots};
use super::start::TrainingOptions;
use super::state::StoredProgress;
use super::work::TrainingWork;
use crate::kinds;
use crate::plans::LoadedVersion;
use crate::run::drive::{ended_with, succeeded};
use crate::run::kind::{Kind, KindRow, PastRun, Run, RunOutcome, RunProgress};
use crate::run::{End, RunPorts, RunWriter, plain_input, run_problem, whole};
use crate::text::{json as text_of, stored_json};

/// Delay for recovered runs that have not started before, so that started ones get their slots first.
const OTHERS_FIRST: Duration = Duration::from_millis(500);
/// Maximum concurrent runs that judge stored results again. They make no calls, so they do not wait for runs that do.
const RESCORING: usize = 2;
/// The first event's mark.
const STARTED: &str = "started";

/// Trainings and evaluations.
pub(crate) struct TrainingRuns {
    pub(super) slots: Slots,
    /// Slots for runs that judge stored results again.
    pub(super) rescoring: Slots,
    pub(super) endpoints: Endpoints,
    pub(super) pauses: Pauses,
}

impl TrainingRuns {
    /// `places`: maximum number of runs that execute concurrently.
    pub(crate) fn new(places: usize) -> Self {
        Self {
            slots: Slots::new(places),
            rescoring: Slots::new(RESCORING),
            endpoints: Endpoints::default(),
            pauses: Pauses::default(),
        }
    }

    /// Pause tokens for runs in this process.
    pub(crate) fn pauses(&self) -> Pauses {
        self.pauses.clone()
    }
}

/// Kind-specific data of a run.
pub(crate) struct TrainingData {
    config: Map<String, Value>,
    accepted_at: DateTime<Utc>,
    /// Held during the execution.
    slot: Mutex<Option<Slot>>,
}

impl TrainingData {
    pub(super) fn new(config: Map<String, Value>, accepted_at: DateTime<Utc>) -> Self {
        Self { config, accepted_at, slot: Mutex::default() }
    }
}

/// Data for the event when a run starts to execute.
pub(crate) struct Opening {
    /// Set in the first life.
    started: Option<Box<(Decided, Vec<u8>)>>,
    /// The reason why a later life executes.
    resumed: &'static str,
}

impl Kind for TrainingRuns {
    type Data = TrainingData;
    type ReaderState = BTreeSet<String>;
    type Events = TrainingEvents;
    type Work = TrainingWork;
    type Opening = Opening;

    const ROW: KindRow = kinds::TRAINING;

    fn own(&self, left: &LeftRun) -> Result<TrainingData, String> {
        let options = left.run.options.as_deref().map(stored_json).transpose();
        let options =
            options.and_then(|options| options.map(serde_json::from_value::<TrainingOptions>).transpose());
        let options = options.map_err(|error| format!("the options of a training: {error}"))?;
        Ok(TrainingData::new(options.unwrap_or_default().config, left.run.created_at))
    }

    fn fresh(&self, _run: &Run<Self>) -> BTreeSet<String> {
        BTreeSet::new()
    }

    async fn told(
        &self,
        run: &Run<Self>,
        _stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, BTreeSet<String>), StoreError> {
        let marks = ports.store.marks_of_run(run.id).await?.into_iter().collect();
        Ok((ports.store.last_seq(run.stream).await?, marks))
    }

    async fn may_start(
        &self,
        run: &Run<Self>,
        ports: &RunPorts,
        stop: &CancellationToken,
    ) -> Result<bool, StoreError> {
        let pause = self.pauses.token(run.id);
        if ports.store.pause_requested(run.id).await? {
            return Ok(true);
        }
        let training = ports.store.training(run.id).await?;
        let judges_again = training.is_some_and(|training| training.origin_run_id.is_some());
        let slots = if judges_again { &self.rescoring } else { &self.slots };
        // At process start, runs that executed before are continued first.
        if matches!(run.progress, RunProgress::Recovered { started_at: None, .. }) {
            ports.clock.sleep(OTHERS_FIRST).await;
        }
        tokio::select! {
            biased;
            () = stop.cancelled() => {}
            () = pause.cancelled() => {}
            slot = slots.take(run.workspace, run.id) => *run.own.slot.lock() = Some(slot),
        }
        Ok(true)
    }

    async fn input(
        &self,
        run: &Run<Self>,
        _version: &LoadedVersion,
        marks: &BTreeSet<String>,
        ports: &RunPorts,
    ) -> Result<Option<(TrainingWork, Opening)>, StoreError> {
        // The run itself reads the rest once it executes.
        let corrupt = |what: &str| StoreError::Corrupt(format!("{what} of a training cannot be read"));
        let training = ports.store.training(run.id).await?.ok_or_else(|| corrupt("the row"))?;
        let decided: Decided = serde_json::from_str(&training.start).map_err(|_| corrupt("the start"))?;
        let state = StoredProgress::stored(training.state.as_deref());
        let is_first = !marks.contains(STARTED);
        let started = is_first.then(|| Box::new((decided.clone(), training.fingerprint.clone())));
        let opening = Opening { started, resumed: resumed(&run.progress, &state, ports.writer) };
        let work = TrainingWork {
            stored: StoredStart { training, decided, state },
            marks: marks.clone(),
            inputs: run.inputs.clone(),
            config: run.own.config.clone(),
            accepted_at: run.own.accepted_at,
            endpoints: self.endpoints.clone(),
            pauses: self.pauses.clone(),
        };
        Ok(Some((work, opening)))
    }

    fn events(&self, run: &Run<Self>, _marks: BTreeSet<String>, ports: &RunPorts) -> TrainingEvents {
        TrainingEvents::new(run.id, Arc::clone(&ports.clock))
    }

    fn open(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        opening: Opening,
        stopping: bool,
        writer: &RunWriter<TrainingEvents>,
        _ports: &RunPorts,
    ) {
        let Opening { started, resumed } = opening;
        writer.with(|events| match started {
            Some(started) => {
                let (decided, fingerprint) = *started;
                events.event(TrainingEvent::RunStarted {
                    workflow_id: run.workflow.to_string(),
                    version: version.number,
                    resumed: false,
                });
                tell_start(events, decided, &fingerprint, version.number);
                events.mark(STARTED.to_owned());
            }
            None if stopping => {}
            None => events.event(TrainingEvent::TrainingResumed { reason: resumed.to_owned() }),
        });
    }

    async fn parked(&self, run: &Run<Self>, ports: &RunPorts) {
        // The pause may have been revoked while the run was being parked.
        match ports.store.wake_unless_paused(run.id).await {
            Ok(true) => ports.wakeups.queue(),
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(run = %run.id, %error, "failed to check a pause; retrying within the hour")
            }
        }
    }

    fn stored_end(&self, run: &Run<Self>, ports: &RunPorts) {
        ports.ended_trainings.notify_one();
        if run.trigger == GATE {
            ports.rollouts.gates();
        }
    }

    fn pause(&self, run: Uuid) {
        self.pauses.request(run);
    }

    fn ended(events: &mut TrainingEvents, outcome: RunOutcome) -> End {
        match outcome {
            RunOutcome::Succeeded(completed) => {
                if let Some(result) = events.take_result(false) {
                    events.event(result);
                }
                let end = succeeded(&completed);
                events.last(TrainingEvent::RunCompleted { output: completed.output });
                end
            }
            RunOutcome::Failed(error) => {
                events.last(TrainingEvent::RunFailed { error: run_problem(&error) });
                ended_with(RunState::Failed, &error)
            }
            RunOutcome::Stopped | RunOutcome::Abandoned => {
                let error = whole(ErrorCode::RunCancelled);
                let result = events.take_result(true);
                let output = result.as_ref().and_then(output_of);
                if let Some(result) = result {
                    events.event(result);
                }
                events.last(TrainingEvent::RunCancelled { error: run_problem(&error) });
                End { output, ..ended_with(RunState::Cancelled, &error) }
            }
        }
    }

    async fn past_input(&self, past: PastRun<'_>, _ports: &RunPorts) -> Result<RunInput, StoreError> {
        let PastRun { stored, inputs, version } = past;
        // Its cases have separate traces.
        Ok(plain_input(stored.id, stored.workflow_id, &stored.trigger, inputs, version))
    }
}

/// The reason why a run executes again.
fn resumed(progress: &RunProgress, state: &StoredProgress, writer: Uuid) -> &'static str {
    match progress {
        // Before the first case, no instance has stored its name.
        RunProgress::Recovered { interrupted: true, .. } if state.owner == writer || state.owner.is_nil() => {
            "restart"
        }
        RunProgress::Recovered { interrupted: true, .. } => "takeover",
        _ if state.refused_since.is_some() => Interruption::RateLimited.as_str(),
        _ => Interruption::Pause.as_str(),
    }
}

/// Adds the start events: the run's plan, and warnings for its author.
fn tell_start(events: &mut TrainingEvents, decided: Decided, fingerprint: &[u8], version: Option<i32>) {
    let Decided { kind, optimizer, splits, trainable, pins, estimate, warnings, resumed_from, .. } = decided;
    if kind == TrainingKind::Training {
        events.event(TrainingEvent::TrainingStarted(Box::new(TrainingStarted {
            optimizer,
            splits: splits.unwrap_or_default(),
            dataset_fingerprint: hex::encode(fingerprint),
            trainable_prompts: trainable,
            pins: serde_json::to_value(pins).unwrap_or_default(),
            version,
            estimate,
            resumed_from,
        })));
    }
    for warning in warnings {
        events.event(TrainingEvent::TrainingWarning { code: warning.code, message: warning.message });
    }
}

/// The output of a cancelled run: its result so far.
fn output_of(result: &TrainingEvent) -> Option<String> {
    match result {
        TrainingEvent::TrainingResult(result) => Some(text_of(result)),
        TrainingEvent::EvaluationResult(result) => Some(text_of(result)),
        _ => None,
    }
}
