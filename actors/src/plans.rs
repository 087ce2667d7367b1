//! A short-lived cache of compiled versions and workflows' publication state.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashmap::{DashMap, DashSet};
use engine::Plan;
use kernel::Clock;
use serde_json::{Map, Value};
use store::{LiveVersions, Store, StoreError, StoredVersion, StoredWorkflow, WorkflowRef};
use uuid::Uuid;

/// Maximum time before another instance's workflow change is noticed.
const FRESH: Duration = Duration::from_secs(1);
/// Maximum entries before all are dropped and read again.
const CAPACITY: usize = 10_000;

/// A version that is ready to run.
pub struct LoadedVersion {
    /// UUIDv7.
    pub id: Uuid,
    /// Its workflow.
    pub workflow: Uuid,
    /// The number within the workflow, from 1; `None` for a draft.
    pub number: Option<i32>,
    /// The compiled graph.
    pub plan: Arc<Plan>,
    /// Prompts and settings for a run.
    pub config: Arc<Map<String, Value>>,
}

/// A workflow and its live version.
#[derive(Clone)]
pub struct Runnable {
    /// The workflow.
    pub workflow: Arc<StoredWorkflow>,
    /// Its live version, if it has one.
    pub version: Option<Arc<LoadedVersion>>,
    /// Its canary, if it has one that compiles.
    pub canary: Option<Canary>,
    /// The versions as read, including a canary that does not compile.
    versions: LiveVersions,
}

/// A version that a share of new chat threads uses.
#[derive(Clone)]
pub struct Canary {
    /// The version.
    pub version: Arc<LoadedVersion>,
    /// The share of new threads, in percent.
    pub percent: i32,
}

impl Runnable {
    /// The version for a thread that started with this canary, if any: the live version if that canary is gone.
    #[must_use]
    pub fn version_of(&self, canary: Option<i32>) -> Option<Arc<LoadedVersion>> {
        let is_it = |known: &&Canary| canary.is_some() && known.version.number == canary;
        self.canary
            .as_ref()
            .filter(is_it)
            .map(|known| Arc::clone(&known.version))
            .or_else(|| self.version.clone())
    }
}

/// A version could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The database did not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored graph does not compile with this service version.
    #[error("version {0} does not compile: {1}")]
    Graph(Uuid, String),
    /// A run names a version that does not exist.
    #[error("version {0} was not found")]
    Missing(Uuid),
}

/// Versions never change, so they are cached; workflows are read again after a second, or after a local change.
pub struct Plans {
    store: Store,
    clock: Arc<dyn Clock>,
    versions: DashMap<Uuid, Arc<LoadedVersion>>,
    workflows: DashMap<Uuid, (Duration, Runnable)>,
    /// Counts invalidations: data read before one is not cached.
    changes: AtomicU64,
    /// Workflows that had a canary at the last read.
    canaries: DashSet<Uuid>,
    /// Workflows whose change is being committed: reads of them are not cached.
    changing: DashMap<Uuid, usize>,
}

/// Held while a workflow change that does not come from a request is committed.
pub(crate) struct Changing<'a> {
    plans: &'a Plans,
    workflow: Uuid,
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        // Before the mark is removed, or a turn in between would find the old version.
        self.plans.forget(self.workflow);
        if let Some(mut count) = self.plans.changing.get_mut(&self.workflow) {
            *count = count.saturating_sub(1);
        }
        self.plans.changing.remove_if(&self.workflow, |_, count| *count == 0);
    }
}

impl Plans {
    /// Creates an empty cache.
    #[must_use]
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            versions: DashMap::new(),
            workflows: DashMap::new(),
            changes: AtomicU64::new(0),
            canaries: DashSet::new(),
            changing: DashMap::new(),
        }
    }

    /// Whether a version is cached in compiled form.
    pub(crate) fn has(&self, version: Uuid) -> bool {
        self.versions.contains_key(&version)
    }

    /// Returns a workflow with its live version, at most a second old.
    ///
    /// # Errors
    /// [`PlanError`] when it cannot be read or compiled.
    pub async fn runnable(&self, workflow: Uuid) -> Result<Option<Runnable>, PlanError> {
        let now = self.clock.monotonic();
        if let Some(entry) = self.workflows.get(&workflow) {
            let (read_at, runnable) = entry.value();
            if now.saturating_sub(*read_at) < FRESH && !self.changing.contains_key(&workflow) {
                return Ok(Some(runnable.clone()));
            }
        }
        let changes = self.changes.load(Ordering::Acquire);
        let Some(stored) = self.store.workflow(&WorkflowRef::Id(workflow), Uuid::nil()).await? else {
            return Ok(None);
        };
        let Some(versions) = self.store.live_versions(workflow).await? else { return Ok(None) };
        let runnable = self.loaded(Arc::new(stored), versions).await?;
        if self.workflows.len() >= CAPACITY {
            self.workflows.clear();
        }
        self.workflows.insert(workflow, (now, runnable.clone()));
        if self.changes.load(Ordering::Acquire) != changes {
            self.workflows.remove(&workflow);
        }
        Ok(Some(runnable))
    }

    /// Refreshes a workflow that was just read, with the versions that its chats use now, whichever instance changed
    /// them.
    ///
    /// # Errors
    /// [`PlanError`] when they cannot be read or compiled.
    pub(crate) async fn current(&self, known: Runnable) -> Result<Runnable, PlanError> {
        let Some(versions) = self.store.live_versions(known.workflow.id).await? else { return Ok(known) };
        if known.versions == versions {
            return Ok(known);
        }
        self.workflows.remove(&known.workflow.id);
        self.loaded(known.workflow, versions).await
    }

    async fn loaded(
        &self,
        workflow: Arc<StoredWorkflow>,
        versions: LiveVersions,
    ) -> Result<Runnable, PlanError> {
        let LiveVersions { live, canary, percent } = versions;
        let version = match live {
            Some(number) => self.numbered(workflow.id, number).await?,
            None => None,
        };
        let canary = match canary.zip(percent) {
            Some((number, percent)) => {
                self.canaries.insert(workflow.id);
                match self.numbered(workflow.id, number).await {
                    Ok(version) => version.map(|version| Canary { version, percent }),
                    // The chat with the live version continues.
                    Err(PlanError::Graph(version, problem)) => {
                        kernel::warn_once_a_minute!("canary.not_compiled", %version, problem, "canary does not compile");
                        None
                    }
                    Err(error) => return Err(error),
                }
            }
            None => {
                self.canaries.remove(&workflow.id);
                None
            }
        };
        Ok(Runnable { workflow, version, canary, versions })
    }

    async fn numbered(&self, workflow: Uuid, number: i32) -> Result<Option<Arc<LoadedVersion>>, PlanError> {
        let version = self.store.version(workflow, number).await?;
        version.map(|version| self.compiled(version)).transpose()
    }

    /// Whether a workflow had a canary at the last read.
    pub(crate) fn has_canary(&self, workflow: Uuid) -> bool {
        self.canaries.contains(&workflow)
    }

    /// Marks a workflow while a change that does not come from a request is committed.
    pub(crate) fn changing(&self, workflow: Uuid) -> Changing<'_> {
        *self.changing.entry(workflow).or_insert(0) += 1;
        self.workflows.remove(&workflow);
        Changing { plans: self, workflow }
    }

    /// Returns a workflow version in this workspace by number, or the live one.
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

    /// Returns a version by id.
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

    /// Returns a version by id; `None` if it is missing or does not compile.
    pub(crate) async fn usable_version(&self, id: Uuid) -> Result<Option<Arc<LoadedVersion>>, StoreError> {
        match self.version(id).await {
            Ok(version) => Ok(Some(version)),
            Err(PlanError::Store(error)) => Err(error),
            Err(PlanError::Graph(..) | PlanError::Missing(_)) => Ok(None),
        }
    }

    /// Invalidates a workflow that was changed here: the next access reads it again.
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
