//! Workflow runs that pages of hosted apps start.

use std::sync::Arc;

use chrono::TimeDelta;
use serde_json::Value;
use store::batch::AppRunRow;
use store::{Admitted, AnonymousLimits, AppAdmission, MinuteLimit};
use uuid::Uuid;

use crate::kinds::workflow::{NewRun, RunOptions, StartedRun, WorkflowRuns, start_rows};
use crate::plans::{LoadedVersion, PlanError};
use crate::run::RunPorts;
use crate::run::actor::RunActors;
use crate::run::kind::Accepted;
use crate::run::start::{Claimed, IdempotencyKey, RunIds, Starts};
use crate::streams::Reader;

pub use crate::run::RunApp;
pub use crate::run::start::RunStartError;

/// The `Idempotency-Key` of a start, reserved in each scope.
#[derive(Debug, Clone)]
pub struct AppKey {
    /// App, binding and principal; the first scope decides whether the key is known.
    pub scopes: Vec<String>,
    /// The header's value.
    pub key: String,
    /// SHA-256 of the request.
    pub digest: Vec<u8>,
}

impl AppKey {
    /// The key in the deciding scope.
    fn as_known(&self) -> IdempotencyKey {
        let scope = self.scopes.first().cloned().unwrap_or_default();
        IdempotencyKey { scope, also: None, key: self.key.clone(), digest: self.digest.clone() }
    }
}

/// A new app run.
pub struct NewAppRun {
    /// The app, its release, and the member.
    pub app: RunApp,
    /// The app's workspace.
    pub workspace: Uuid,
    /// The binding's name.
    pub binding: String,
    /// The version that the release froze.
    pub version: Arc<LoadedVersion>,
    /// A JSON object.
    pub input: Value,
    /// Whether the input fits the schemas of the binding and the workflow.
    pub fits: bool,
    /// Maximum duration in seconds.
    pub timeout_seconds: u32,
    /// Maximum unfinished runs per binding.
    pub max_concurrent: u32,
    /// SHA-256 of the visitor's cookie.
    pub visitor: Option<Vec<u8>>,
    /// Rate limits, all of which must admit the start.
    pub minutes: Vec<MinuteLimit>,
    /// The network of a visitor who is not signed in, with its limits.
    pub anonymous: Option<AnonymousLimits>,
    /// The request's key.
    pub key: AppKey,
}

impl NewAppRun {
    fn admission<'a>(&'a self, ids: &'a RunIds) -> AppAdmission<'a, RunIds> {
        AppAdmission {
            scopes: &self.key.scopes,
            key: &self.key.key,
            digest: &self.key.digest,
            outcome: ids,
            run: ids.run,
            app: self.app.id,
            binding: &self.binding,
            workflow: self.version.workflow,
            max_concurrent: self.max_concurrent,
            minutes: &self.minutes,
            anonymous: self.anonymous.as_ref(),
            fits: self.fits,
        }
    }

    /// The workflow run and its app row. `handle`: SHA-256 of its handle; `limited`: whether it waits for a free slot.
    fn into_run(self, id: Uuid, handle: Vec<u8>, limited: bool) -> (NewRun, AppRunRow) {
        let row = AppRunRow {
            run_id: id,
            app_id: self.app.id,
            release_id: self.app.release,
            binding: self.binding,
            handle,
            visitor: self.visitor,
            user_id: self.app.member,
            network: self.anonymous.map(|anonymous| anonymous.network),
        };
        let timeout_seconds = Some(f64::from(self.timeout_seconds));
        let run = NewRun {
            workspace: self.workspace,
            version: self.version,
            inputs: self.input,
            options: RunOptions { timeout_seconds, app: Some(self.app), ..RunOptions::default() },
            trigger: "app",
            limited,
            idempotency: None,
        };
        (run, row)
    }
}

/// The result of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppStart {
    /// The run is stored.
    Started(StartedRun),
    /// A limit is reached; it resets after this time.
    Limited(TimeDelta),
    /// The input does not fit the schemas.
    Unfit,
}

/// Starts and reads app runs. Cheap to clone.
#[derive(Clone)]
pub struct AppRuns {
    pub(crate) ports: RunPorts,
    pub(crate) actors: RunActors<WorkflowRuns<true>>,
    pub(crate) starts: Starts,
}

impl AppRuns {
    /// Returns the version that a release froze.
    ///
    /// # Errors
    /// [`PlanError`] if it cannot be read or compiled.
    pub async fn version(&self, id: Uuid) -> Result<Arc<LoadedVersion>, PlanError> {
        self.ports.plans.version(id).await
    }

    /// Stores a run's start, unless a limit is reached or its input does not fit. `handle` returns the SHA-256 of a
    /// run's handle.
    ///
    /// # Errors
    /// [`RunStartError`]; only [`RunStartError::Unacknowledged`] leaves open whether the run was stored.
    pub async fn start(
        &self,
        new: NewAppRun,
        handle: impl Fn(Uuid) -> Vec<u8>,
    ) -> Result<AppStart, RunStartError> {
        let token = self.starts.admit::<RunIds>(new.workspace, Some(&new.key.as_known())).await?;
        let ids = RunIds { run: token.run() };
        let (reserved, limited) = match self.ports.store.admit_app_run(&new.admission(&ids)).await {
            Ok(Admitted::Reserved(reserved, limited)) => (reserved, limited),
            Ok(Admitted::Limited(wait)) => {
                token.released();
                return Ok(AppStart::Limited(wait));
            }
            Ok(Admitted::Unfit) => {
                token.released();
                return Ok(AppStart::Unfit);
            }
            Err(error) => {
                token.released();
                return Err(error.into());
            }
        };
        let (ids, claim) = match self.starts.claim_reserved(reserved, ids, token).await? {
            // The request that reserved the key was checked against an earlier release's schema.
            Claimed::Start(_, claim) if !new.fits => {
                claim.released();
                return Ok(AppStart::Unfit);
            }
            Claimed::Start(ids, claim) => (ids, claim),
            Claimed::Started(RunIds { run }) => {
                return Ok(AppStart::Started(StartedRun { run, replayed: true }));
            }
        };
        let replayed = claim.is_for_another();
        let (run, row) = new.into_run(ids.run, handle(ids.run), limited);
        let (mut rows, run) = start_rows(run, ids.run, self.ports.clock.now());
        rows.batch.app_runs.push(row);
        let actors = self.actors.clone();
        let accept = move |token| actors.accept(Accepted { run: Arc::new(run), token, stop: false });
        self.starts.commit(claim, rows, accept).await?;
        Ok(AppStart::Started(StartedRun { run: ids.run, replayed }))
    }

    /// Reads a run's stream after event `after`.
    #[must_use]
    pub fn read(&self, run: Uuid, after: u64) -> Reader {
        self.ports.read(run, after, false)
    }
}
