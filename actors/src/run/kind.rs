//! What differs between kinds of runs. The core does everything else: it starts, drives, parks, ends and recovers runs of
//! every kind the same way.

use std::borrow::Cow;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use engine::{Completed, RunError, RunInput};
use futures_util::future::BoxFuture;
use kernel::ThreadId;
use parking_lot::Mutex;
use serde_json::Value;
use store::{LeftRun, RunState, StoreError, StoredRun};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::budget::BudgetAccount;
use super::early_start::EarlyStart;
use super::lease::RunToken;
use super::waiting::Waits;
use super::writer::{End, RunWriter};
use super::{EventWriter, RunApp, RunPorts, Work};
use crate::plans::LoadedVersion;
use crate::runtime::ActorKind;

/// A row of the table of kinds (`kinds/mod.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindRow {
    /// Its name in logs.
    pub(crate) name: &'static str,
    /// The actors that drive its runs.
    pub(crate) actor: ActorKind,
    /// What starts its runs, as their rows have it.
    pub(crate) triggers: &'static [&'static str],
    /// How long a run continues after a shutdown has begun; the next process resumes it. `None`: as long as the shutdown
    /// lasts.
    pub(crate) drain: Option<Duration>,
    /// Whether its events tell which attempts have started, so that a resumed run can find out which ones were interrupted.
    pub(crate) tells_attempts: bool,
    /// Whether a run can be repeated from one of its steps.
    pub(crate) repeatable: bool,
    /// Whether a run that only waits goes into the queue; else it fails.
    pub(crate) parks: bool,
    /// Whether readers see the items that nodes send.
    pub(crate) shows_items: bool,
    /// Whether events stay for as long as their run.
    pub(crate) keeps_events: bool,
}

/// A kind of run.
pub(crate) trait Kind: Sized + Send + Sync + 'static {
    /// What a run of this kind has beside what every run has.
    type Own: Send + Sync + 'static;
    /// What readers have received from earlier lives of a run, as far as the next life depends on it.
    type Told: Send + 'static;
    /// Writes the events of its streams.
    type Events: EventWriter;
    /// What a run executes.
    type Work: Work<Self::Events>;
    /// What a run changes when it starts to execute.
    type Opening: Send + 'static;

    /// Its row of the table.
    const ROW: KindRow;

    /// Reads its part of a stored run. Pure.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    fn own(&self, left: &LeftRun) -> Result<Self::Own, String>;

    /// What readers of a new run have received with its start. Pure.
    fn fresh(&self, run: &Run<Self>) -> Self::Told;

    /// What readers of a resumed run have received, and the number of the last event. `stopping`: nothing of it is executed any more.
    async fn told(
        &self,
        run: &Run<Self>,
        stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, Self::Told), StoreError>;

    /// Waits until the run may execute. Returns whether it is still this instance's.
    async fn may_start(
        &self,
        _run: &Run<Self>,
        _ports: &RunPorts,
        _stop: &CancellationToken,
    ) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// What the run executes with; `None` if nothing is left to execute, and the run ends as stopped.
    async fn input(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        told: &Self::Told,
        ports: &RunPorts,
    ) -> Result<Option<(Self::Work, Self::Opening)>, StoreError>;

    /// The account that pays for the run's models; `None` if they have no limits.
    fn account(&self, _run: &Run<Self>) -> Option<BudgetAccount> {
        None
    }

    /// The app that the run belongs to.
    fn app(&self, _run: &Run<Self>) -> Option<RunApp> {
        None
    }

    /// The writer of the run's events. Pure.
    fn events(&self, run: &Run<Self>, told: Self::Told, ports: &RunPorts) -> Self::Events;

    /// Notes what the run changes when it starts to execute; is committed with its first rows. `stopping`: its stop was
    /// requested before.
    fn open(
        &self,
        _run: &Run<Self>,
        _version: &LoadedVersion,
        _opening: Self::Opening,
        _stopping: bool,
        _writer: &RunWriter<Self::Events>,
        _ports: &RunPorts,
    ) {
    }

    /// Work beside the execution; it is dropped when that ends.
    async fn alongside(&self, _run: &Run<Self>, _writer: &RunWriter<Self::Events>, _ports: &RunPorts) {}

    /// Ends when the run has been without readers for too long.
    async fn abandoned(&self, _run: &Run<Self>, _readers: watch::Receiver<usize>, _ports: &RunPorts) {
        std::future::pending().await
    }

    /// Decides what becomes of a run that only waits. If it goes into the queue, tells readers why
    /// nothing follows.
    async fn parks(
        &self,
        _run: &Run<Self>,
        _waits: Waits,
        _writer: &RunWriter<Self::Events>,
        _ports: &RunPorts,
    ) -> Parking {
        Parking::Queue
    }

    /// A run has gone into the queue.
    async fn parked(&self, _run: &Run<Self>, _ports: &RunPorts) {}

    /// The end of a run is stored.
    fn stored_end(&self, _run: &Run<Self>, _ports: &RunPorts) {}

    /// A client wants a run paused; it may execute elsewhere, or be of another kind.
    fn pause(&self, _run: Uuid) {}

    /// Writes the last events. Pure.
    fn ended(events: &mut Self::Events, outcome: Outcome) -> End;

    /// What an earlier run executed with, as far as it is still known.
    fn past_input(
        &self,
        stored: &StoredRun,
        inputs: Value,
        version: &Arc<LoadedVersion>,
        ports: &RunPorts,
    ) -> impl Future<Output = Result<RunInput, StoreError>> + Send;
}

/// A run, as this process executes it.
pub(crate) struct Run<K: Kind> {
    pub(crate) id: Uuid,
    /// Where its readers read.
    pub(crate) stream: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    /// The version it executes; `None` if it cannot be read any more, and the run can only be ended.
    pub(crate) version: Option<Arc<LoadedVersion>>,
    pub(crate) inputs: Value,
    pub(crate) trigger: Cow<'static, str>,
    /// Whether it holds a place among the runs of its workflow.
    pub(crate) placed: bool,
    /// How often it has gone into the queue.
    pub(crate) parked: i32,
    pub(crate) progress: Progress,
    /// Its start, if that is not stored yet.
    pub(crate) early: Mutex<Option<Box<EarlyStart>>>,
    /// What its kind knows of it.
    pub(crate) own: K::Own,
}

/// What is stored of a run when it is handed to its actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Only its start.
    New {
        /// Sequence number of the next event.
        next_seq: u64,
    },
    /// An earlier life may have got further; the database knows.
    Recovered {
        /// When it first started, if that is known.
        started_at: Option<DateTime<Utc>>,
        /// Whether that life was interrupted, and did not put the run into the queue.
        interrupted: bool,
        /// Ends of a process in a row, without a shutdown and without progress, that the run has seen.
        crashes: i32,
    },
}

impl Progress {
    /// As an earlier life left it.
    pub(crate) fn stored(LeftRun { run, crashes, .. }: &LeftRun) -> Self {
        let interrupted = run.started_at.is_some() && run.status == RunState::Running;
        Self::Recovered { started_at: run.started_at, interrupted, crashes: *crashes }
    }
}

impl<K: Kind> Run<K> {
    /// When an earlier life first started it; `None` if none has.
    pub(crate) fn first_start(&self) -> Option<DateTime<Utc>> {
        match self.progress {
            Progress::New { .. } => None,
            Progress::Recovered { started_at, .. } => started_at,
        }
    }

    /// The run that an earlier life left.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    pub(crate) fn stored(
        kind: &K,
        left: &LeftRun,
        version: Option<Arc<LoadedVersion>>,
        inputs: Value,
    ) -> Result<Self, String> {
        let run = &left.run;
        Ok(Self {
            id: run.id,
            stream: run.stream_id.ok_or("the run has no stream")?,
            workspace: run.workspace_id,
            workflow: run.workflow_id,
            version,
            inputs,
            trigger: Cow::Owned(run.trigger.clone()),
            placed: left.placed,
            parked: run.parked,
            progress: Progress::stored(left),
            early: Mutex::default(),
            own: kind.own(left)?,
        })
    }
}

/// A run, and the right to execute it.
pub(crate) struct Accepted<K: Kind> {
    pub(crate) run: Arc<Run<K>>,
    pub(crate) token: RunToken,
    /// Whether its stop was requested before it was handed over.
    pub(crate) stop: bool,
}

/// What becomes of a run that only waits.
pub(crate) enum Parking {
    /// It goes into the queue, and resumes from there.
    Queue,
    /// It ends; another run continues it.
    End(End),
}

/// How a run ended.
pub(crate) enum Outcome {
    /// With this output.
    Succeeded(Completed),
    /// With this error.
    Failed(RunError),
    /// Its stop was requested, or nothing is left to execute.
    Stopped,
    /// It was without readers for too long.
    Abandoned,
}

/// The way to the actors of one kind.
pub(crate) trait Door: Send + Sync {
    /// The kind's row of the table.
    fn row(&self) -> KindRow;

    /// Hands a run of an earlier life to its actor.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    fn take_up(
        &self,
        left: &LeftRun,
        version: Option<Arc<LoadedVersion>>,
        inputs: Value,
        token: RunToken,
    ) -> Result<(), String>;

    /// Notifies the run's actor, if it has one here, that a stop was requested. `thread`: the thread of a turn.
    fn stop(&self, run: Uuid, thread: Option<ThreadId>);

    /// Notifies the run's work, if it executes here, that a client wants it paused.
    fn pause(&self, run: Uuid);

    /// See [`Kind::past_input`].
    fn past_input<'a>(
        &'a self,
        stored: &'a StoredRun,
        inputs: Value,
        version: &'a Arc<LoadedVersion>,
    ) -> BoxFuture<'a, Result<RunInput, StoreError>>;
}

/// Every kind of run of this build. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Kinds(Arc<[Arc<dyn Door>]>);

impl Kinds {
    pub(crate) fn new(doors: Vec<Arc<dyn Door>>) -> Self {
        Self(doors.into())
    }

    /// A client wants a run paused.
    pub(crate) fn pause(&self, run: Uuid) {
        self.0.iter().for_each(|door| door.pause(run));
    }

    /// The kind whose runs have this trigger; `None` for one of a newer build.
    pub(crate) fn of(&self, trigger: &str) -> Option<&dyn Door> {
        self.0.iter().find(|door| door.row().triggers.contains(&trigger)).map(|door| &**door)
    }
}
