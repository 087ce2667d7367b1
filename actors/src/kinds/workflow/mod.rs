//! Workflow runs outside chats: starts, reads, waits, stops and repeats.

mod answering;
mod events;
mod input;
mod kind;
mod repeat;
mod start;

use std::collections::HashSet;
use std::time::Duration;

use engine::FilledInput;
use store::{RunFilter, RunState, StoreError, StoredDelivery, StoredRun};
use uuid::Uuid;

pub use crate::run::quota::{Quota, WorkspaceFull};
pub use crate::run::start::{IdempotencyKey, RunStartError};
pub(crate) use kind::WorkflowRuns;
pub use repeat::{Repeat, RepeatError};
pub(in crate::kinds) use start::start_rows;
pub use start::{NewRun, RunOptions, RunOrigin};

use crate::plans::{LoadedVersion, PlanError};
use crate::run::actor::RunActors;
use crate::run::cancel::Cancel;
use crate::run::kind::{Accepted, Kinds};
use crate::run::start::{Claimed, RunIds, Starts};
use crate::run::{RunPorts, refill};
use crate::streams::{Reader, Readout};
use std::sync::Arc;
use store::WorkflowRef;

/// Interval of the polls whether another instance's run is parked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A run that was started, by this request or an earlier one with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
    /// The run.
    pub run: Uuid,
    /// Whether an earlier request started it.
    pub replayed: bool,
}

/// Starts, reads, stops and repeats runs. Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    pub(crate) ports: RunPorts,
    pub(crate) actors: RunActors<WorkflowRuns<false>>,
    pub(crate) kinds: Kinds,
    pub(crate) starts: Starts,
    pub(crate) cancel: Cancel,
}

impl Runs {
    /// Returns a workflow version in this workspace by number, or the live version.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn version(
        &self,
        workspace: Uuid,
        workflow: Uuid,
        number: Option<i32>,
    ) -> Result<Option<Arc<LoadedVersion>>, PlanError> {
        self.ports.plans.find(workspace, &WorkflowRef::Id(workflow), number).await
    }

    /// Returns a version or a draft by id.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn version_by_id(&self, id: Uuid) -> Result<Arc<LoadedVersion>, PlanError> {
        self.ports.plans.version(id).await
    }

    /// Returns the run that an earlier request with this key started, if its start is stored.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] when the key belongs to another request.
    pub async fn started(&self, key: &IdempotencyKey) -> Result<Option<StartedRun>, RunStartError> {
        let known = self.starts.started::<RunIds>(key).await?;
        Ok(known.map(|ids| StartedRun { run: ids.run, replayed: true }))
    }

    /// Storage limits of workspaces.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.ports.quota
    }

    /// Stores a run's start. After this returns, the run executes even if the caller disconnects.
    ///
    /// # Errors
    /// [`RunStartError`]; only [`RunStartError::Unacknowledged`] leaves open whether the run was stored.
    pub async fn start(&self, new: NewRun) -> Result<StartedRun, RunStartError> {
        let key = new.idempotency.clone();
        let token = self.starts.admit::<RunIds>(new.workspace, key.as_ref()).await?;
        let ids = RunIds { run: token.run() };
        let (ids, claim) = match self.starts.claim(key.as_ref(), ids, token).await? {
            Claimed::Start(ids, claim) => (ids, claim),
            Claimed::Started(known) => return Ok(StartedRun { run: known.run, replayed: true }),
        };
        let (rows, run) = start_rows(new, ids.run, self.ports.clock.now());
        let actors = self.actors.clone();
        let accept = move |token| actors.accept(Accepted { run: Arc::new(run), token, stop: false });
        self.starts.commit(claim, rows, accept).await?;
        Ok(StartedRun { run: ids.run, replayed: false })
    }

    /// Returns a run with its version's number.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn run(&self, id: Uuid) -> Result<Option<(StoredRun, Option<i32>)>, StoreError> {
        self.ports.store.numbered_run(id).await
    }

    /// Returns a workflow's runs, newest first, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn of_workflow(
        &self,
        workflow: Uuid,
        filter: RunFilter,
        limit: i64,
    ) -> Result<Vec<(StoredRun, Option<i32>)>, StoreError> {
        self.ports.store.runs_of_workflow(workflow, filter, limit).await
    }

    /// Returns the inputs of visits, `(node, visit)`, without secrets. `None` if the run is too large, its version is
    /// gone, too many other requests are active, or it takes too long, for example while the vault does not answer.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn inputs(
        &self,
        stored: &StoredRun,
        wanted: HashSet<(String, u32)>,
    ) -> Result<Option<Vec<FilledInput>>, StoreError> {
        refill::inputs(&self.ports, &self.kinds, stored, wanted).await
    }

    /// Returns the deliveries that a run's steps have enqueued, with their status.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn deliveries(&self, run: Uuid) -> Result<Vec<StoredDelivery>, StoreError> {
        self.ports.store.deliveries(run).await
    }

    /// Reads a run's stream after event `after`.
    #[must_use]
    pub fn read(&self, stream: Uuid, after: u64) -> Reader {
        self.ports.read(stream, after, false)
    }

    /// Waits until a run has ended or is parked, at most `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn wait(&self, run: Uuid, limit: Duration) -> Result<(), StoreError> {
        let mut parkings = self.ports.wakeups.parkings();
        // Starts after every event, so it reads only the end.
        let mut reader = self.ports.read(run, u64::MAX - 1, false);
        let ended = async {
            while reader.next().await? != Readout::End {}
            Ok(())
        };
        let waiting = async {
            loop {
                let found = self.ports.store.run(run).await?;
                if found.is_none_or(|run| run.status == RunState::Waiting) {
                    return Ok(());
                }
                // Polled, because another instance does not notify this one.
                let told = async { while parkings.recv().await.is_ok_and(|parked| parked != run) {} };
                let _ = kernel::timeout(&*self.ports.clock, POLL_INTERVAL, told).await;
            }
        };
        let either = async {
            tokio::select! {
                ended = ended => ended,
                waiting = waiting => waiting,
            }
        };
        Box::pin(kernel::timeout(&*self.ports.clock, limit, either)).await.unwrap_or(Ok(()))
    }

    /// Stores a request to stop a run, and waits briefly for its end. Does not affect a run that has ended.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stop(&self, run: Uuid) -> Result<(), StoreError> {
        self.cancel.cancel(run).await.map(drop)
    }

    /// Stores a request to stop a run; `None` if the run does not exist.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn request_stop(&self, run: Uuid) -> Result<Option<StoredRun>, StoreError> {
        self.cancel.request(run).await
    }

    /// Waits briefly for the end of a run whose stop was requested.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn await_stop(&self, requested: StoredRun) -> Result<(), StoreError> {
        self.cancel.await_end(requested).await.map(drop)
    }

    /// Number of run actors in this process.
    #[must_use]
    pub fn len(&self) -> usize {
        self.actors.len()
    }

    /// Whether no run has an actor in this process.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
