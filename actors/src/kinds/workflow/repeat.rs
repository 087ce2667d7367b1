//! Runs that repeat another run.

use std::sync::Arc;

use serde_json::{Map, Value};
use store::{RunState, StoredRun};
use wire::FieldError;

use super::{IdempotencyKey, NewRun, RunOptions, RunOrigin, RunStartError, Runs, StartedRun};
use crate::plans::{LoadedVersion, PlanError};
use crate::text::stored_json;

/// A run was not repeated.
#[derive(Debug, thiserror::Error)]
pub enum RepeatError {
    /// The run is a chat turn, or cannot be read any more.
    #[error("the run cannot be repeated")]
    Never,
    /// The request does not fit the run.
    #[error("the options do not match the run")]
    Invalid(Vec<FieldError>),
    /// The inputs do not fit the version.
    #[error("the inputs do not match the version's schema")]
    Inputs(Vec<FieldError>),
    /// The new run was not started.
    #[error(transparent)]
    Start(#[from] RunStartError),
    /// Its version cannot be read now.
    #[error(transparent)]
    Plan(#[from] PlanError),
}

/// A repetition of a run.
#[derive(Default)]
pub struct Repeat {
    /// The super-step to start from; by default the failed one, or else the first one.
    pub from_step: Option<u32>,
    /// Values for `state` channels from that step on.
    pub patch: Map<String, Value>,
    /// Inputs that replace the run's inputs.
    pub inputs: Option<Value>,
    /// The version that replaces the run's version.
    pub version: Option<Arc<LoadedVersion>>,
}

impl Runs {
    /// Starts a run that repeats another. Copies the results of the steps before its first one. With other inputs or
    /// another version, copies nothing.
    ///
    /// # Errors
    /// [`RepeatError`].
    pub async fn repeat(
        &self,
        run: StoredRun,
        wanted: Repeat,
        limited: bool,
        idempotency: Option<IdempotencyKey>,
    ) -> Result<StartedRun, RepeatError> {
        if !self.kinds.for_trigger(&run.trigger).is_some_and(|kind| kind.row().repeatable) {
            return Err(RepeatError::Never);
        }
        let is_changed = wanted.inputs.is_some() || wanted.version.is_some();
        let version = match wanted.version {
            Some(version) => version,
            None => {
                let version = self.ports.plans.usable_version(run.version_id).await;
                version.map_err(PlanError::Store)?.ok_or(RepeatError::Never)?
            }
        };
        let mut problems = version.plan.check_patch(&wanted.patch, "/patch");
        let from_step = match is_changed {
            true => first_step(wanted.from_step),
            false => self.copied_step(&run, wanted.from_step).await?,
        };
        let from_step = from_step.map_err(|problem| problems.insert(0, problem)).unwrap_or(1);
        if !problems.is_empty() {
            return Err(RepeatError::Invalid(problems));
        }
        let inputs = match wanted.inputs {
            Some(inputs) => inputs,
            None => stored_json(&run.inputs).map_err(|_| RepeatError::Never)?,
        };
        let problems = version.plan.check_inputs(&inputs);
        if is_changed && !problems.is_empty() {
            return Err(RepeatError::Inputs(problems));
        }
        let options = RunOptions::stored(&run);
        let origin = Some(RunOrigin::new(run.id, options.origin.clone(), from_step, wanted.patch));
        let new = NewRun {
            workspace: run.workspace_id,
            version,
            inputs,
            // An API caller repeats the run, not a page: it does not act for the app or its member.
            options: RunOptions { origin, app: None, ..options },
            trigger: "rerun",
            limited,
            idempotency,
        };
        Ok(self.start(new).await?)
    }

    /// The step from which a run is repeated.
    async fn copied_step(
        &self,
        run: &StoredRun,
        wanted: Option<u32>,
    ) -> Result<Result<u32, FieldError>, RepeatError> {
        let step = |step: Option<i32>| step.and_then(|step| u32::try_from(step).ok());
        let last = self.ports.store.last_step(run.id).await.map_err(RunStartError::from)?;
        let last = step(last).unwrap_or(1);
        if let Some(wanted) = wanted {
            let message = format!("must be a step of the run, from 1 to {last}");
            let is_known = (1..=last).contains(&wanted);
            return Ok(is_known.then_some(wanted).ok_or(FieldError::new("/from_step", "range", message)));
        }
        let failed = self.ports.store.first_failed_step(run.id).await.map_err(RunStartError::from)?;
        // A run may fail without a failed attempt, for example by its time limit.
        let ended = if run.status == RunState::Failed { last } else { 1 };
        Ok(Ok(step(failed).unwrap_or(ended)))
    }
}

/// The first step of a run with other inputs or another version.
fn first_step(wanted: Option<u32>) -> Result<u32, FieldError> {
    match wanted {
        None | Some(1) => Ok(1),
        Some(_) => {
            let message = "cannot be combined with 'inputs' or 'version': nothing is copied then";
            Err(FieldError::new("/from_step", "conflict", message))
        }
    }
}
