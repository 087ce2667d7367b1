//! Runs of workflows by themselves: begun, read, waited for, stopped; each is a supervised actor.

mod actor;
mod answering;
mod driver;
mod events;
mod refill;
mod registry;
mod repeat;
mod start;

use std::time::Duration;

use store::{RunFilter, RunStatus, StoreError, StoredDelivery, StoredRun};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use crate::run::keyed_start::{IdempotencyKey, RunStartError};
pub use crate::run::quota::{Quota, WorkspaceFull};
pub(crate) use driver::Run;
pub(crate) use registry::{AcceptedRun, Registry};
pub use repeat::RepeatError;
pub use start::{NewRun, Origin, RunOptions};

use crate::plans::{LoadedVersion, PlanError};
use crate::run::RunPorts;
use crate::run::cancel::Cancel;
use crate::run::keyed_start::{self, Claimed};
use crate::run::lease::RunToken;
use crate::streams::{Reader, Readout};
use start::RunIds;
use std::sync::Arc;
use store::WorkflowRef;

/// Interval of the polls whether a run of another instance is parked.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// A run that was begun, now or by an earlier request with the same key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
    /// The run.
    pub run: Uuid,
    /// Whether an earlier request began it.
    pub replayed: bool,
}

/// Begins, reads and stops runs. Cheap to clone.
#[derive(Clone)]
pub struct Runs {
    pub(crate) ports: RunPorts,
    pub(crate) registry: Registry,
    pub(crate) cancel: Cancel,
    pub(crate) draining: CancellationToken,
}

impl Runs {
    /// A version of a workflow of this workspace by its number, or its latest.
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

    /// A version or a draft by its id.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn version_by_id(&self, id: Uuid) -> Result<Arc<LoadedVersion>, PlanError> {
        self.ports.plans.version(id).await
    }

    /// The run that an earlier request with this key began, if its start is stored.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] when the key stands for another request.
    pub async fn started(&self, key: &IdempotencyKey) -> Result<Option<StartedRun>, RunStartError> {
        let known = keyed_start::started::<RunIds>(&self.ports, key).await?;
        Ok(known.map(|ids| StartedRun { run: ids.run, replayed: true }))
    }

    /// Which workspaces may keep more.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        &self.ports.quota
    }

    /// Stores a run's start. Once this returns, it runs whatever becomes of the caller.
    ///
    /// # Errors
    /// [`RunStartError`]; only [`RunStartError::Unacknowledged`] leaves open whether the run was stored.
    pub async fn start(&self, new: NewRun) -> Result<StartedRun, RunStartError> {
        if self.draining.is_cancelled() {
            return Err(RunStartError::Draining);
        }
        if !self.ports.db.takes_new_work() {
            return Err(RunStartError::Overloaded);
        }
        keyed_start::refuse_full::<RunIds>(&self.ports, new.workspace, new.idempotency.as_ref()).await?;
        let mut token = self.ports.in_flight.begin()?;
        let mut for_another = false;
        if let Some(key) = &new.idempotency {
            let ids = RunIds { run: token.run() };
            token = match keyed_start::claim(&self.ports, key, ids, token).await? {
                Claimed::Begin(_, token) => token,
                Claimed::BeginFor(_, token) => {
                    for_another = true;
                    token
                }
                Claimed::Started(known) => return Ok(StartedRun { run: known.run, replayed: true }),
            };
        }
        let id = token.run();
        let (limited, workspace) = (new.limited, new.workspace);
        let (batch, run) = start::rows(new, id, self.ports.clock.now());
        let registry = self.registry.clone();
        let accept = move |token: RunToken| {
            if limited {
                // The instance that claims it from the queue owns it.
                let (ports, run) = (registry.ports(), token.run());
                token.released();
                ports.topics.abandon(run);
                ports.wakeups.queue();
            } else if for_another {
                // Checks which instance owns the run.
                drop(token);
                registry.ports().topics.abandon(id);
            } else {
                registry.accept(AcceptedRun { run, token, stop: false });
            }
        };
        keyed_start::commit_start(&self.ports, (workspace, id), token, batch, None, accept).await?;
        if for_another {
            self.cancel.recovery().adopt(&[id]).await;
        }
        Ok(StartedRun { run: id, replayed: false })
    }

    /// A run with the number of its version.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn run(&self, id: Uuid) -> Result<Option<(StoredRun, Option<i32>)>, StoreError> {
        self.ports.store.numbered_run(id).await
    }

    /// A workflow's runs, newest first, at most `limit`.
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

    /// What has become of what a run's steps have left to be sent.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn deliveries(&self, run: Uuid) -> Result<Vec<StoredDelivery>, StoreError> {
        self.ports.store.deliveries(run).await
    }

    /// Reads a run's stream behind event `after`.
    #[must_use]
    pub fn read(&self, stream: Uuid, after: u64) -> Reader {
        self.ports.read(stream, after, false)
    }

    /// Waits until a run has ended or is parked, at most for `limit`.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn wait(&self, run: Uuid, limit: Duration) -> Result<(), StoreError> {
        let mut parkings = self.ports.wakeups.parkings();
        // Behind every event: all it ever reads is the end.
        let mut reader = self.ports.read(run, u64::MAX - 1, false);
        let ended = async {
            while reader.next().await? != Readout::End {}
            Ok(())
        };
        let waiting = async {
            loop {
                let found = self.ports.store.run(run).await?;
                if found.is_none_or(|run| run.status == RunStatus::Waiting) {
                    return Ok(());
                }
                // Another instance tells nothing.
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

    /// Stores that a run shall end, and waits for its end for a moment. A run that has ended stays as it is.
    ///
    /// # Errors
    /// [`StoreError`] when the database does not answer.
    pub async fn stop(&self, run: Uuid) -> Result<(), StoreError> {
        self.cancel.cancel(run).await.map(drop)
    }

    /// How many runs have an actor here.
    #[must_use]
    pub fn len(&self) -> usize {
        self.registry.len()
    }

    /// Whether no run has an actor here.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
