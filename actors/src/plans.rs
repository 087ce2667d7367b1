//! Compiled versions and the publication state of workflows, kept for a moment.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::DashMap;
use engine::Plan;
use kernel::Clock;
use serde_json::{Map, Value};
use store::{Store, StoreError, StoredVersion, StoredWorkflow, WorkflowRef};
use uuid::Uuid;

/// How long another instance's change of a workflow may go unnoticed.
const FRESH: Duration = Duration::from_secs(1);
/// Entries kept before all are dropped and read anew.
const CAPACITY: usize = 10_000;

/// A version that is ready to run.
pub struct LoadedVersion {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// Counts from 1 within the workflow; `None` for a draft.
    pub number: Option<i32>,
    /// The compiled graph.
    pub plan: Arc<Plan>,
    /// Prompts and settings of a run.
    pub config: Arc<Map<String, Value>>,
}

/// A workflow and its live version.
#[derive(Clone)]
pub struct Runnable {
    /// The workflow.
    pub workflow: Arc<StoredWorkflow>,
    /// Its live version, if it has one.
    pub version: Option<Arc<LoadedVersion>>,
}

/// A version could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored graph does not compile with this version of the service.
    #[error("version {0} does not compile: {1}")]
    Graph(Uuid, String),
    /// A run names a version that is not there.
    #[error("version {0} is not there")]
    Missing(Uuid),
}

/// Versions never change, so they are kept; workflows are read again after a second, or once changed here.
pub struct Plans {
    store: Store,
    clock: Arc<dyn Clock>,
    versions: DashMap<Uuid, Arc<LoadedVersion>>,
    workflows: DashMap<Uuid, (Duration, Runnable)>,
    /// Counts what was forgotten: what was read before that is not kept.
    changes: AtomicU64,
}

impl Plans {
    /// Empty.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, versions: DashMap::new(), workflows: DashMap::new(), changes: AtomicU64::new(0) }
    }

    /// A workflow with its live version, at most a second old.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn runnable(&self, workflow: Uuid) -> Result<Option<Runnable>, PlanError> {
        let now = self.clock.monotonic();
        if let Some(entry) = self.workflows.get(&workflow) {
            let (read_at, runnable) = entry.value();
            if now.saturating_sub(*read_at) < FRESH {
                return Ok(Some(runnable.clone()));
            }
        }
        let changes = self.changes.load(Ordering::Acquire);
        let Some(stored) = self.store.workflow(&WorkflowRef::Id(workflow), Uuid::nil()).await? else {
            return Ok(None);
        };
        let version = match stored.live_version {
            Some(number) => match self.store.version(workflow, number).await? {
                Some(version) => Some(self.compiled(version)?),
                None => None,
            },
            None => None,
        };
        let runnable = Runnable { workflow: Arc::new(stored), version };
        if self.workflows.len() >= CAPACITY {
            self.workflows.clear();
        }
        self.workflows.insert(workflow, (now, runnable.clone()));
        if self.changes.load(Ordering::Acquire) != changes {
            self.workflows.remove(&workflow);
        }
        Ok(Some(runnable))
    }

    /// A version of a workflow of this workspace by its number, or its live one.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn find(
        &self,
        workspace: Uuid,
        workflow: &WorkflowRef,
        number: Option<i32>,
    ) -> Result<Option<Arc<LoadedVersion>>, PlanError> {
        let found = self.store.workflow(workflow, workspace).await?;
        let Some(found) = found.filter(|found| found.workspace_id == workspace) else { return Ok(None) };
        let Some(number) = number.or(found.live_version) else { return Ok(None) };
        let version = self.store.version(found.id, number).await?;
        version.map(|version| self.compiled(version)).transpose()
    }

    /// A version by its id.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn version(&self, id: Uuid) -> Result<Arc<LoadedVersion>, PlanError> {
        if let Some(known) = self.versions.get(&id) {
            return Ok(Arc::clone(&known));
        }
        let stored = self.store.version_by_id(id).await?.ok_or(PlanError::Missing(id))?;
        self.compiled(stored)
    }

    /// The workflow was changed here: the next look reads it again.
    pub fn forget(&self, workflow: Uuid) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.workflows.remove(&workflow);
    }

    fn compiled(&self, stored: StoredVersion) -> Result<Arc<LoadedVersion>, PlanError> {
        if let Some(known) = self.versions.get(&stored.id) {
            return Ok(Arc::clone(&known));
        }
        let problems = |problems: engine::Problems| {
            let first = problems.first().map(|problem| format!("{}: {}", problem.pointer, problem.message));
            PlanError::Graph(stored.id, first.unwrap_or_default())
        };
        let graph = engine::parse(&stored.graph).map_err(problems)?;
        let plan = engine::compile(&graph).map_err(problems)?;
        let loaded = Arc::new(LoadedVersion {
            id: stored.id,
            workflow: stored.workflow_id,
            number: stored.number,
            plan: Arc::new(plan),
            config: Arc::new(stored.runnable_config.unwrap_or_default()),
        });
        if self.versions.len() >= CAPACITY {
            self.versions.clear();
        }
        self.versions.insert(stored.id, Arc::clone(&loaded));
        Ok(loaded)
    }
}
