//! Starts, controls and reads trainings and evaluations. A run executes a search over cases, which are engine
//! executions with in-memory journals; everything that a later life needs is a row.

mod calls;
mod cases;
mod checked;
mod datasets;
mod decided;
mod events;
mod gate;
mod halt;
mod kind;
mod lab;
mod limits;
mod outside;
mod prepare;
mod progress;
mod publish;
mod reads;
mod records;
mod regression;
mod report;
mod rescore;
mod reserve;
mod result;
mod session;
mod slots;
mod start;
mod state;
mod work;

use std::sync::Arc;
use std::time::Duration;

use store::{DatasetOfRun, StoreError};
use uuid::Uuid;

use crate::kinds::workflow::{IdempotencyKey, RunStartError, WorkspaceFull};
use crate::run::RunPorts;
use crate::run::actor::RunActors;
use crate::run::cancel::Cancel;
use crate::run::kind::{Accepted, Kinds};
use crate::run::start::{Claimed, RunIds, Starts};
pub use datasets::{DatasetContent, ReadDataset, fingerprint_of};
pub use gate::FixedGate;
pub(crate) use halt::Pauses;
pub(crate) use kind::TrainingRuns;
pub use limits::request_problems;
pub use prepare::{Prepared, Refused, Wanted};
pub use reads::CasesPage;
pub use records::checkpoint_record;
pub use regression::{NotACase, WantedCase};
pub use report::{report_curve, report_page};
pub use rescore::{NotRescored, RescoredCandidate};
pub use training::request::names_credential;

/// Maximum wait for a pause to take effect before the request returns.
const PAUSE_WAIT: Duration = Duration::from_secs(12);
/// Interval of the polls during that wait.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A run that was started, by this request or an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedTraining {
    /// The run.
    pub run: Uuid,
    /// Whether an earlier request started it.
    pub replayed: bool,
}

/// Identifies the run of a repeated request.
#[derive(Debug, Clone)]
pub struct TrainingKey {
    /// The request's `Idempotency-Key`, if any.
    pub key: Option<IdempotencyKey>,
    /// The run id chosen by the client, if any.
    pub run: Option<Uuid>,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

/// Starts, controls and reads trainings and evaluations. Cheap to clone.
#[derive(Clone)]
pub struct Trainings {
    pub(crate) ports: RunPorts,
    pub(crate) actors: RunActors<TrainingRuns>,
    pub(crate) pauses: Pauses,
    pub(crate) kinds: Kinds,
    pub(crate) starts: Starts,
    pub(crate) cancel: Cancel,
}

impl Trainings {
    /// Reads and checks everything before the first call, and makes all decisions; stores nothing.
    ///
    /// # Errors
    /// [`Refused`] with all problems in the request.
    pub async fn prepare(&self, wanted: Wanted) -> Result<Prepared, Refused> {
        prepare::prepare(&self.ports, wanted).await
    }

    /// Returns the run that an earlier request with this key or id started.
    ///
    /// # Errors
    /// [`RunStartError::KeyReused`] if that was another request.
    pub async fn started(&self, key: &TrainingKey) -> Result<Option<StartedTraining>, RunStartError> {
        let replayed = |run| Some(StartedTraining { run, replayed: true });
        if let Some(run) = key.run {
            let store = &self.ports.store;
            let Some(stored) = store.training(run).await? else {
                // The id may belong to another kind's run or stream, or to a dataset.
                let is_taken = store.run(run).await?.is_some()
                    || store.stream(run).await?.is_some()
                    || store.is_named_dataset(run).await?;
                return if is_taken { Err(RunStartError::KeyReused) } else { Ok(None) };
            };
            return if stored.digest == key.digest {
                Ok(replayed(run))
            } else {
                Err(RunStartError::KeyReused)
            };
        }
        match &key.key {
            Some(key) => Ok(self.starts.started::<RunIds>(key).await?.and_then(|ids| replayed(ids.run))),
            None => Ok(None),
        }
    }

    /// Stores a run's start. After this returns, the run executes even if the caller disconnects.
    ///
    /// # Errors
    /// [`RunStartError`].
    pub async fn start(
        &self,
        prepared: Prepared,
        key: TrainingKey,
    ) -> Result<StartedTraining, RunStartError> {
        let claimed = match key.run {
            Some(run) => {
                let run = RunIds { run };
                self.starts.claim_id(prepared.workspace, run, "trainings", &key.digest).await?
            }
            None => {
                let token = self.starts.admit::<RunIds>(prepared.workspace, key.key.as_ref()).await?;
                let ids = RunIds { run: token.run() };
                self.starts.claim(key.key.as_ref(), ids, token).await?
            }
        };
        let (ids, claim) = match claimed {
            Claimed::Start(ids, claim) => (ids, claim),
            Claimed::Started(known) => return Ok(StartedTraining { run: known.run, replayed: true }),
        };
        if prepared.dataset.is_none() {
            let cases = DatasetOfRun {
                run: ids.run,
                workspace: prepared.workspace,
                workflow: prepared.version.workflow,
                fingerprint: &prepared.fingerprint,
                cases: &prepared.cases,
            };
            match self.ports.store.store_cases_of_run(&cases).await {
                Ok(true) => {}
                Ok(false) => {
                    claim.released();
                    return Err(RunStartError::KeyReused);
                }
                Err(error) => {
                    claim.released();
                    return Err(error.into());
                }
            }
        }
        let (rows, run) = start::rows(prepared, ids.run, key.digest, self.ports.clock.now());
        let actors = self.actors.clone();
        let accept = move |token| actors.accept(Accepted { run: Arc::new(run), token, stop: false });
        self.starts.commit(claim, rows, accept).await?;
        Ok(StartedTraining { run: ids.run, replayed: false })
    }

    /// Checks whether a workspace may store more.
    ///
    /// # Errors
    /// [`WorkspaceFull`] if it may not.
    pub fn check_room(&self, workspace: Uuid) -> Result<(), WorkspaceFull> {
        self.ports.quota.room(workspace)
    }

    /// Stores a request to end a run, and waits briefly for its end.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn cancel(&self, run: Uuid) -> Result<(), StoreError> {
        self.cancel.cancel(run).await.map(drop)
    }

    /// Stores a request to pause a run, and waits briefly for the pause. Does not affect a run that has ended.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn pause(&self, run: Uuid) -> Result<(), StoreError> {
        self.ports.store.request_pause(run).await?;
        let paused = async {
            loop {
                // Repeated, because a run is stored shortly before its actor exists.
                self.pauses.request(run);
                let found = self.ports.store.run(run).await?;
                let is_over = |run: store::StoredRun| {
                    run.status.is_terminal() || run.status == store::RunState::Waiting
                };
                // The pause may have been revoked meanwhile.
                if found.is_none_or(is_over) || !self.ports.store.pause_requested(run).await? {
                    return Ok(());
                }
                self.ports.clock.sleep(POLL_INTERVAL).await;
            }
        };
        kernel::timeout(&*self.ports.clock, PAUSE_WAIT, paused).await.unwrap_or(Ok(()))
    }

    /// Revokes a pause, and waits until the run has left the queue.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn resume(&self, run: Uuid) -> Result<(), StoreError> {
        let resumed = async {
            loop {
                // Repeated, because the run may be parking right now.
                self.ports.store.request_resume(run).await?;
                self.ports.wakeups.queue();
                if !self.ports.store.is_parked(run).await? {
                    return Ok(());
                }
                self.ports.clock.sleep(POLL_INTERVAL).await;
            }
        };
        kernel::timeout(&*self.ports.clock, PAUSE_WAIT, resumed).await.unwrap_or(Ok(()))
    }
}
