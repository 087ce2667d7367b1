//! What the steps of a run were given, filled again from its journal.

use std::collections::HashSet;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use engine::{Activity, FilledInput, RunInput};
use futures_util::FutureExt as _;
use serde_json::Value;
use store::{StoreError, StoredRun};

use super::Runs;
use super::driver::{Run, run_input};
use crate::kinds::turn;
use crate::plans::{LoadedVersion, PlanError};
use crate::run::{self, Adapters};
use crate::text::stored_json;

/// Attempts of a run whose inputs are filled again, and bytes of their results.
const MOST: (i64, i64) = (10_000, 16 << 20);
/// Longest time that it may take.
const LIMIT: Duration = Duration::from_secs(5);

impl Runs {
    /// Returns what visits of nodes were given, `(node, visit)`, without secrets. `None` if the run is too large for that, if its
    /// version is gone, if others ask for so much just now, or if it takes too long, as while the vault does not answer.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn inputs(
        &self,
        stored: &StoredRun,
        wanted: HashSet<(String, u32)>,
    ) -> Result<Option<Vec<FilledInput>>, StoreError> {
        let ports = &self.ports;
        let (attempts, bytes) = ports.store.journal_size(stored.id).await?;
        if attempts > MOST.0 || bytes > MOST.1 {
            return Ok(None);
        }
        let version = match ports.plans.version(stored.version_id).await {
            Ok(version) => version,
            Err(PlanError::Store(error)) => return Err(error),
            Err(PlanError::Graph(..) | PlanError::Missing(_)) => return Ok(None),
        };
        let Ok(inputs) = stored_json(&stored.inputs) else { return Ok(None) };
        let Ok(_turn) = ports.refilling.try_acquire() else { return Ok(None) };
        let filling = async {
            let recorded = run::read_journal(&ports.store, stored.id).await?;
            let input = self.input_of(stored, inputs, &version).await?;
            let adapters = Adapters::of(stored.id, stored.workspace_id, ports);
            let (nowhere, activity) = (engine::ports::Nowhere, Activity::default());
            let engine = adapters.ports(ports, &nowhere, &nowhere, &activity);
            Ok(engine::refill(&version.plan, input, recorded, wanted, engine).await)
        };
        match kernel::timeout(&*ports.clock, LIMIT, AssertUnwindSafe(filling).catch_unwind()).await {
            Some(Ok(filled)) => filled.map(Some),
            Some(Err(_)) => {
                tracing::error!(run = %stored.id, "filling inputs again panicked");
                Ok(None)
            }
            None => Ok(None),
        }
    }

    /// What its run was given.
    async fn input_of(
        &self,
        stored: &StoredRun,
        inputs: Value,
        version: &Arc<LoadedVersion>,
    ) -> Result<RunInput, StoreError> {
        if let Some(thread) = stored.thread_id {
            let messages = match version.plan.reads_messages() {
                true => turn::messages_of(&self.ports.store, stored, thread).await?,
                false => Vec::new(),
            };
            return Ok(turn::run_input((stored.id, stored.workflow_id, thread), version, inputs, messages));
        }
        let run = Run::stored(stored, Some(Arc::clone(version)), inputs);
        Ok(run_input(&run, version, &self.ports))
    }
}
