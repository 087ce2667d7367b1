//! The differences between run kinds. The core does the rest: it starts, drives, parks, ends and recovers runs of every
//! kind the same way.

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
use store::batch::{Batch, RunRow, StreamRow};
use store::{LeftRun, RunState, StoreError, StoredRun};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use wire::chat::Dialect;

use super::budget::BudgetAccount;
use super::early_start::EarlyStart;
use super::lease::RunToken;
use super::waiting::Waits;
use super::writer::{End, RunWriter};
use super::{EventWriter, RunApp, RunPorts, Work};
use crate::plans::LoadedVersion;
use crate::runtime::ActorKind;
use crate::text::json;

/// A row in the table of kinds (`kinds/mod.rs`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KindRow {
    /// Name in logs.
    pub(crate) name: &'static str,
    /// The actors that drive the runs.
    pub(crate) actor: ActorKind,
    /// Triggers that start the runs, as stored in their rows.
    pub(crate) triggers: &'static [&'static str],
    /// Maximum time a run continues after shutdown has begun; the next process resumes it. `None`: as long as shutdown
    /// lasts.
    pub(crate) drain: Option<Duration>,
    /// Whether events include attempt starts, so that a resumed run can detect interrupted attempts.
    pub(crate) tells_attempts: bool,
    /// Whether a run can be repeated from one of its steps.
    pub(crate) repeatable: bool,
    /// Whether a run that only waits is parked; otherwise it fails.
    pub(crate) parks: bool,
    /// Whether readers see items that nodes send.
    pub(crate) shows_items: bool,
    /// Whether events are retained as long as their run.
    pub(crate) keeps_events: bool,
}

/// A run kind.
pub(crate) trait Kind: Sized + Send + Sync + 'static {
    /// Kind-specific data of a run.
    type Data: Send + Sync + 'static;
    /// The reader state from earlier lives, as far as the next life depends on it.
    type ReaderState: Send + 'static;
    /// Writes the stream events.
    type Events: EventWriter;
    /// The work that a run executes.
    type Work: Work<Self::Events>;
    /// Changes made when a run starts to execute.
    type Opening: Send + 'static;

    /// Its row in the table.
    const ROW: KindRow;

    /// Parses the kind-specific part of a stored run. Pure.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    fn own(&self, left: &LeftRun) -> Result<Self::Data, String>;

    /// The reader state after a new run's start. Pure.
    fn fresh(&self, run: &Run<Self>) -> Self::ReaderState;

    /// The last event's number and the reader state of a resumed run. `stopping`: the run executes nothing further.
    async fn told(
        &self,
        run: &Run<Self>,
        stopping: bool,
        ports: &RunPorts,
    ) -> Result<(u64, Self::ReaderState), StoreError>;

    /// Waits until the run may execute. Returns whether this instance still owns it.
    async fn may_start(
        &self,
        _run: &Run<Self>,
        _ports: &RunPorts,
        _stop: &CancellationToken,
    ) -> Result<bool, StoreError> {
        Ok(true)
    }

    /// The run's work; `None` if nothing remains to execute, and the run ends as stopped.
    async fn input(
        &self,
        run: &Run<Self>,
        version: &LoadedVersion,
        told: &Self::ReaderState,
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

    /// Creates the run's event writer. Pure.
    fn events(&self, run: &Run<Self>, told: Self::ReaderState, ports: &RunPorts) -> Self::Events;

    /// Notes the changes made at the start of execution; they are committed with the run's first rows. `stopping`: the
    /// stop was requested before.
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

    /// Work alongside the execution; dropped when the execution ends.
    async fn alongside(&self, _run: &Run<Self>, _writer: &RunWriter<Self::Events>, _ports: &RunPorts) {}

    /// Ends after too long without readers.
    async fn abandoned(&self, _run: &Run<Self>, _readers: watch::Receiver<usize>, _ports: &RunPorts) {
        std::future::pending().await
    }

    /// Decides whether a run that only waits is parked. If it enters the queue, notifies readers why no events follow.
    async fn parks(
        &self,
        _run: &Run<Self>,
        _waits: Waits,
        _writer: &RunWriter<Self::Events>,
        _ports: &RunPorts,
    ) -> Parking {
        Parking::Queue
    }

    /// Called after a run was parked.
    async fn parked(&self, _run: &Run<Self>, _ports: &RunPorts) {}

    /// Called after a run's end is stored.
    fn stored_end(&self, _run: &Run<Self>, _ports: &RunPorts) {}

    /// A client requests a pause; the run may execute elsewhere, or be of another kind.
    fn pause(&self, _run: Uuid) {}

    /// Writes the final events. Pure.
    fn ended(events: &mut Self::Events, outcome: RunOutcome) -> End;

    /// The input of a past run, as far as it is still known.
    fn past_input(
        &self,
        past: PastRun<'_>,
        ports: &RunPorts,
    ) -> impl Future<Output = Result<RunInput, StoreError>> + Send;
}

/// A past run with the inputs and the version that it executed.
pub(crate) struct PastRun<'a> {
    pub(crate) stored: &'a StoredRun,
    pub(crate) inputs: Value,
    pub(crate) version: &'a LoadedVersion,
}

/// A run from an earlier life, as read for the next one.
pub(crate) struct RecoveredRun {
    pub(crate) left: LeftRun,
    /// `None` if the run can only be ended: it is unreadable, or crashed the process too often.
    pub(crate) version: Option<Arc<LoadedVersion>>,
    pub(crate) inputs: Value,
}

/// A run that this process executes.
pub(crate) struct Run<K: Kind> {
    pub(crate) id: Uuid,
    /// The stream for its readers.
    pub(crate) stream: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    /// The version to execute; `None` if the run can only be ended.
    pub(crate) version: Option<Arc<LoadedVersion>>,
    pub(crate) inputs: Value,
    pub(crate) trigger: Cow<'static, str>,
    /// Whether it occupies a slot among its workflow's runs.
    pub(crate) placed: bool,
    /// Number of times it was parked.
    pub(crate) parked: i32,
    pub(crate) progress: RunProgress,
    /// Its start, if not yet stored.
    pub(crate) early: Mutex<Option<Box<EarlyStart>>>,
    /// Kind-specific data.
    pub(crate) own: K::Data,
}

/// The stored state of a run at its handover to an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunProgress {
    /// Only its start.
    New {
        /// Sequence number of the next event.
        next_seq: u64,
    },
    /// Possibly progress from an earlier life; the database knows.
    Recovered {
        /// Time of the first start, if known.
        started_at: Option<DateTime<Utc>>,
        /// Whether that life was interrupted instead of parking the run.
        interrupted: bool,
        /// Consecutive process crashes without a shutdown and without progress during this run.
        crashes: i32,
    },
}

impl RunProgress {
    /// The progress that an earlier life left.
    fn stored(LeftRun { run, crashes, .. }: &LeftRun) -> Self {
        let interrupted = run.started_at.is_some() && run.status == RunState::Running;
        Self::Recovered { started_at: run.started_at, interrupted, crashes: *crashes }
    }
}

impl<K: Kind> Run<K> {
    /// Time of the first start in an earlier life; `None` if it never started.
    pub(crate) fn first_start(&self) -> Option<DateTime<Utc>> {
        match self.progress {
            RunProgress::New { .. } => None,
            RunProgress::Recovered { started_at, .. } => started_at,
        }
    }

    /// Rebuilds a run from its stored state.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    fn stored(kind: &K, recovered: RecoveredRun) -> Result<Self, String> {
        let RecoveredRun { left, version, inputs } = recovered;
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
            progress: RunProgress::stored(&left),
            early: Mutex::default(),
            own: kind.own(&left)?,
        })
    }
}

/// A new run: the data that its rows and the executing run share.
pub(crate) struct RunStart {
    pub(crate) id: Uuid,
    pub(crate) stream: Uuid,
    pub(crate) workspace: Uuid,
    pub(crate) workflow: Uuid,
    pub(crate) version: Arc<LoadedVersion>,
    pub(crate) trigger: &'static str,
    pub(crate) thread: Option<ThreadId>,
    /// The dialect of a chat's stream; a stream without one belongs to no thread.
    pub(crate) dialect: Option<Dialect>,
    pub(crate) inputs: Value,
    /// JSON.
    pub(crate) options: Option<String>,
}

impl RunStart {
    /// The rows of the run and its stream.
    pub(crate) fn batch(&self, now: DateTime<Utc>) -> Batch {
        Batch {
            runs: vec![RunRow {
                id: self.id,
                workspace_id: self.workspace,
                workflow_id: self.workflow,
                version_id: self.version.id,
                trigger: self.trigger,
                thread_id: self.thread,
                stream_id: Some(self.stream),
                inputs: json(&self.inputs),
                options: self.options.clone(),
                created_at: now,
            }],
            streams: vec![StreamRow {
                id: self.stream,
                run_id: self.id,
                workflow_id: self.workflow,
                thread_id: self.thread.filter(|_| self.dialect.is_some()),
                dialect: self.dialect,
            }],
            ..Batch::default()
        }
    }

    /// The run to hand over.
    pub(crate) fn run<K: Kind>(self, progress: RunProgress, own: K::Data) -> Run<K> {
        Run {
            id: self.id,
            stream: self.stream,
            workspace: self.workspace,
            workflow: self.workflow,
            version: Some(self.version),
            inputs: self.inputs,
            trigger: Cow::Borrowed(self.trigger),
            placed: false,
            parked: 0,
            progress,
            early: Mutex::default(),
            own,
        }
    }
}

/// A run with the right to execute it.
pub(crate) struct Accepted<K: Kind> {
    pub(crate) run: Arc<Run<K>>,
    pub(crate) token: RunToken,
    /// Whether its stop was requested before the handover.
    pub(crate) stop: bool,
}

impl<K: Kind> Accepted<K> {
    /// Accepts a run from an earlier life.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    pub(crate) fn recovered(kind: &K, recovered: RecoveredRun, token: RunToken) -> Result<Self, String> {
        let stop = recovered.left.run.cancel_requested;
        Ok(Self { run: Arc::new(Run::stored(kind, recovered)?), token, stop })
    }
}

/// The decision on a run that only waits.
pub(crate) enum Parking {
    /// It enters the queue and resumes from there.
    Queue,
    /// It ends; another run continues it.
    End(End),
}

/// The outcome of a run.
pub(crate) enum RunOutcome {
    /// An output.
    Succeeded(Completed),
    /// An error.
    Failed(RunError),
    /// A requested stop, or nothing left to execute.
    Stopped,
    /// Too long without readers.
    Abandoned,
}

/// The interface to one kind's actors.
pub(crate) trait Door: Send + Sync {
    /// The kind's row in the table.
    fn row(&self) -> KindRow;

    /// Hands a run from an earlier life to its actor.
    ///
    /// # Errors
    /// A text, if the row does not describe a run of this kind.
    fn take_up(&self, recovered: RecoveredRun, token: RunToken) -> Result<(), String>;

    /// Notifies the run's actor, if it is in this process, of a stop request. `thread`: the turn's thread.
    fn stop(&self, run: Uuid, thread: Option<ThreadId>);

    /// Notifies the run's work, if it executes here, of a client's pause request.
    fn pause(&self, run: Uuid);

    /// See [`Kind::past_input`].
    fn past_input<'a>(&'a self, past: PastRun<'a>) -> BoxFuture<'a, Result<RunInput, StoreError>>;
}

/// All run kinds in this build. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Kinds(Arc<[Arc<dyn Door>]>);

impl Kinds {
    pub(crate) fn new(doors: Vec<Arc<dyn Door>>) -> Self {
        Self(doors.into())
    }

    /// Passes on a client's pause request.
    pub(crate) fn pause(&self, run: Uuid) {
        self.0.iter().for_each(|door| door.pause(run));
    }

    /// The kind with this trigger; `None` for a trigger from a newer build.
    pub(crate) fn for_trigger(&self, trigger: &str) -> Option<&dyn Door> {
        self.0.iter().find(|door| door.row().triggers.contains(&trigger)).map(|door| &**door)
    }
}
