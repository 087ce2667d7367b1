//! A run once more, from one of its steps on.

use serde_json::{Map, Value};
use store::StoredRun;
use wire::FieldError;

use super::{IdempotencyKey, NewRun, Origin, RunOptions, RunStartError, Runs, StartedRun};
use crate::plans::PlanError;
use crate::text::stored_json;

/// A run was not repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// It is a chat's turn, or cannot be read any more.
    #[error("the run cannot be repeated")]
    Never,
    /// What was asked for does not fit the run.
    #[error("what was asked for does not fit the run")]
    Invalid(Vec<FieldError>),
    /// The new run was not begun.
    #[error(transparent)]
    Start(#[from] RunStartError),
    /// Its version cannot be read now.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

impl Runs {
    /// Begins a run that repeats another from super-step `from_step` on: what is before it is copied, not run. `patch`
    /// changes the state before that step.
    ///
    /// # Errors
    /// [`RepeatError`].
    pub async fn repeat(
        &self,
        run: StoredRun,
        from_step: u32,
        patch: Map<String, Value>,
        limited: bool,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<StartedRun, RepeatError> {
        if !self.kinds.of(&run.trigger).is_some_and(|kind| kind.row().repeatable) {
            return Err(RepeatError::Never);
        }
        let version = match self.ports.plans.version(run.version_id).await {
            Ok(version) => version,
            Err(PlanError::Store(error)) => return Err(PlanError::Store(error).into()),
            Err(PlanError::Graph(..) | PlanError::Missing(_)) => return Err(RepeatError::Never),
        };
        let last = self.ports.store.last_step(run.id).await.map_err(RunStartError::from)?;
        let last = last.and_then(|last| u32::try_from(last).ok()).unwrap_or(1);
        let mut problems = version.plan.check_patch(&patch, "/patch");
        if !(1..=last).contains(&from_step) {
            let message = format!("must be a step of the run, from 1 to {last}");
            problems.insert(0, FieldError::new("/from_step", "range", message));
        }
        if !problems.is_empty() {
            return Err(RepeatError::Invalid(problems));
        }
        let options = RunOptions::stored(&run);
        let origin = Some(Origin::new(run.id, options.origin.clone(), from_step, patch));
        let new = NewRun {
            workspace: run.workspace_id,
            version,
            inputs: stored_json(&run.inputs).map_err(|_| RepeatError::Never)?,
            // A caller of the API repeats it, not a page: it does not act for the app or its member.
            options: RunOptions { origin, app: None, ..options },
            trigger: "rerun",
            limited,
            idempotency,
        };
        Ok(self.start(new).await?)
    }
}
