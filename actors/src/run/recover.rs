//! Resumes accepted runs without an end: after a start, a takeover or the end of an actor life.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use serde_json::Value;
use store::{CRASH_LIMIT, CRASH_SUSPECT, LeftRun, StopRequest, StoreError, StoredRun};
use uuid::Uuid;

use super::RunPorts;
use super::kind::{Accepted, Kind, Kinds, RecoveredRun};
use super::lease::RunToken;
use crate::lanes::WriteError;
use crate::plans::{LoadedVersion, PlanError};
use crate::text::stored_json;

/// A run could not be resumed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("run {0} cannot be read: {1}")]
    Unreadable(Uuid, String),
    #[error("this build has no run kind for the trigger {0:?}")]
    Kind(String),
}

impl RecoveryError {
    /// Whether a newer build may be able to execute the run.
    fn is_of_a_newer_build(&self) -> bool {
        matches!(self, Self::Plan(PlanError::Graph(..)) | Self::Kind(_))
    }
}

/// Maximum rows of one query for unfinished runs.
const SCAN_PAGE_ROWS: i64 = 500;
/// Delay before a run left to a newer instance is due in the queue again.
const LEFT_FOR: TimeDelta = TimeDelta::seconds(60);
/// Maximum time to adopt runs before the next lease renewal; the rest wait for the next round.
const ADOPT: Duration = Duration::from_secs(2);

/// Hands unfinished runs to their actors. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Recovery {
    pub(crate) ports: RunPorts,
    pub(crate) kinds: Kinds,
}

impl Recovery {
    /// Resumes every run that this writer's earlier life left, from `since` on; returns their number.
    ///
    /// Must finish before anything new starts, because turns in a thread continue in order. This process has no
    /// uncommitted writes for these runs, so one query reads a page of them.
    pub(crate) async fn earlier_life(&self, mut since: Uuid) -> Result<usize, StoreError> {
        let ports = &self.ports;
        let mut taken = 0;
        loop {
            let page = ports.store.left_runs(ports.writer, since, SCAN_PAGE_ROWS).await?;
            let Some(last) = page.last() else { return Ok(taken) };
            since = Uuid::from_u128(last.run.id.as_u128().saturating_add(1));
            for left in page {
                let id = left.run.id;
                let Some(token) = ports.in_flight.adopt(id) else { continue };
                taken += usize::from(self.resumed(id, self.hand_over(left, token).await).await);
            }
        }
    }

    /// Resumes as many of these runs as time allows; returns their number.
    pub(crate) async fn adopt(&self, runs: &[Uuid]) -> usize {
        let end = self.ports.clock.monotonic() + ADOPT;
        let mut taken = 0;
        for run in runs {
            let handed = match unfinished(&self.ports, *run).await {
                Ok(Some((left, token))) => self.hand_over(left, token).await,
                Ok(None) => continue,
                Err(error) => Err(error.into()),
            };
            taken += usize::from(self.resumed(*run, handed).await);
            if self.ports.clock.monotonic() >= end {
                break;
            }
        }
        taken
    }

    /// Notifies a run's actor in this process of a stop request.
    pub(crate) fn stop(&self, stop: &StopRequest) {
        if let Some(kind) = self.kinds.for_trigger(&stop.trigger) {
            kind.stop(stop.run, stop.thread);
        }
    }

    async fn hand_over(&self, left: LeftRun, token: RunToken) -> Result<(), RecoveryError> {
        let run = &left.run;
        let kind =
            self.kinds.for_trigger(&run.trigger).ok_or_else(|| RecoveryError::Kind(run.trigger.clone()))?;
        let id = run.id;
        let recovered = recovered(&self.ports, left).await?;
        kind.take_up(recovered, token).map_err(|error| RecoveryError::Unreadable(id, error))
    }

    /// Returns whether a run was handed to its actor. Leaves a run to a newer build if only that can execute it.
    async fn resumed(&self, run: Uuid, handed: Result<(), RecoveryError>) -> bool {
        match handed {
            Ok(()) => return true,
            Err(error) if error.is_of_a_newer_build() => leave(&self.ports, run, &error).await,
            Err(error) => {
                kernel::warn_once_a_minute!("run.not_resumed", %run, %error, "failed to resume a run; retrying later")
            }
        }
        false
    }
}

/// Takes an unfinished run of this kind without an owner; `None` if it has ended, is not here, or has an owner.
pub(crate) async fn accepted<K: Kind>(
    kind: &K,
    ports: &RunPorts,
    id: Uuid,
) -> Result<Option<Accepted<K>>, RecoveryError> {
    let Some((left, token)) = unfinished(ports, id).await? else { return Ok(None) };
    let accepted = Accepted::recovered(kind, recovered(ports, left).await?, token);
    accepted.map(Some).map_err(|error| RecoveryError::Unreadable(id, error))
}

/// Takes the unfinished runs among these that have no owner here. Leaves a run to a newer build if only that can
/// execute it.
pub(crate) async fn accepted_of<K: Kind>(
    kind: &K,
    ports: &RunPorts,
    runs: impl IntoIterator<Item = Uuid>,
) -> Result<Vec<Accepted<K>>, RecoveryError> {
    let mut found = Vec::new();
    for run in runs {
        match accepted(kind, ports, run).await {
            Ok(accepted) => found.extend(accepted),
            Err(error) if error.is_of_a_newer_build() => leave(ports, run, &error).await,
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Leaves a run to a newer instance: this build cannot execute it, and must not end a run that another build can
/// execute.
async fn leave(ports: &RunPorts, run: Uuid, error: &RecoveryError) {
    tracing::warn!(%run, %error, "run not executable by this build; leaving it to a newer instance");
    let Some(token) = ports.in_flight.adopt(run) else { return };
    match ports.store.put_back(ports.writer, run, ports.clock.now() + LEFT_FOR).await {
        Ok(()) => token.released(),
        // Dropping the token makes the next round retry.
        Err(error) => tracing::warn!(%run, %error, "failed to requeue a run"),
    }
}

/// Reads an unfinished run of this instance without an owner, and takes the right to execute it.
async fn unfinished(ports: &RunPorts, id: Uuid) -> Result<Option<(LeftRun, RunToken)>, StoreError> {
    // The earlier life's last writes, possibly including its end, may not be committed yet.
    if let Err(WriteError::Poisoned(_)) = ports.db.flush(id).await {
        ports.db.forgive(id);
    }
    // Ownership first: data read without it may be outdated when used.
    let Some(token) = ports.in_flight.adopt(id) else { return Ok(None) };
    match ports.store.left_run(ports.writer, id).await? {
        Some(left) => Ok(Some((left, token))),
        None => {
            // It has ended, is queued, or belongs to another instance: it does not return by itself.
            token.released();
            Ok(None)
        }
    }
}

/// Reads the run's version and inputs; without a version if they are permanently unreadable or the run has crashed.
async fn recovered(ports: &RunPorts, left: LeftRun) -> Result<RecoveredRun, RecoveryError> {
    let run = &left.run;
    if left.crashes >= CRASH_LIMIT {
        tracing::warn!(run = %run.id, "run crashed the process too often; ending it");
        return Ok(RecoveredRun { left, version: None, inputs: Value::Null });
    }
    let read = match left.crashes >= CRASH_SUSPECT && !ports.plans.has(run.version_id) {
        true => readable_alone(ports, run).await,
        false => readable(ports, run).await,
    };
    match read {
        Ok((version, inputs)) => Ok(RecoveredRun { left, version: Some(version), inputs }),
        Err(RecoveryError::Store(error) | RecoveryError::Plan(PlanError::Store(error))) => Err(error.into()),
        Err(error) if error.is_of_a_newer_build() && !run.cancel_requested => Err(error),
        // A retry would fail the same way, and the run's readers are waiting.
        Err(error) => {
            kernel::warn_once_a_minute!("run.unreadable", run = %run.id, %error, "failed to read a run; ending it");
            Ok(RecoveredRun { left, version: None, inputs: Value::Null })
        }
    }
}

/// Reads a run whose mere compilation may crash the process.
async fn readable_alone(
    ports: &RunPorts,
    run: &StoredRun,
) -> Result<(Arc<LoadedVersion>, Value), RecoveryError> {
    ports.store.set_alone(run.id, true).await?;
    let read = readable(ports, run).await;
    ports.store.set_alone(run.id, false).await?;
    read
}

async fn readable(ports: &RunPorts, run: &StoredRun) -> Result<(Arc<LoadedVersion>, Value), RecoveryError> {
    let version = ports.plans.version(run.version_id).await?;
    let inputs = stored_json(&run.inputs);
    Ok((version, inputs.map_err(|error| RecoveryError::Unreadable(run.id, error.to_string()))?))
}
