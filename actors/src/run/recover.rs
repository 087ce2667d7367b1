//! Runs that were accepted and have no end: after a start, after a takeover, after an actor's life.

use std::sync::Arc;
use std::time::Duration;

use chrono::TimeDelta;
use kernel::ThreadId;
use serde_json::Value;
use store::{LeftRun, RunStatus, StopRequest, StoreError, StoredRun};
use uuid::Uuid;

use crate::kinds::turn::thread::{Accepted, Threads};
use crate::kinds::turn::{Again, Progress, Turn};
use crate::kinds::workflow::{self, AcceptedRun, Registry};
use crate::lanes::WriteError;
use crate::plans::{LoadedVersion, PlanError};
use crate::run::RunPorts;
use crate::run::lease::RunToken;
use crate::text::stored_json;

/// A run could not be taken up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecoveryError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Plan(#[from] PlanError),
    #[error("run {0} cannot be read: {1}")]
    Unreadable(Uuid, String),
}

/// Runs that one look at the database reads.
const SCAN_PAGE_ROWS: i64 = 500;
/// How long a run that was left to a newer instance stays in the queue.
const LEFT_FOR: TimeDelta = TimeDelta::seconds(60);
/// How long runs are taken up before the lease is looked after again; what is left stays for the next round.
const ADOPT: Duration = Duration::from_secs(2);

/// Hands unfinished runs to their actors. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Recovery {
    pub(crate) threads: Threads,
    pub(crate) runs: Registry,
}

/// An orphaned run, and its kind.
enum TakenUp {
    Turn(Accepted),
    Run(AcceptedRun),
}

impl Recovery {
    /// Takes up every run that an earlier life of this writer left, from `since` on; says how many.
    ///
    /// It has to end before anything new is begun, because the turns of a thread go on in their order. Nothing of
    /// these runs is on its way in this process, so a page of them takes a single look.
    pub(crate) async fn earlier_life(&self, mut since: Uuid) -> Result<usize, StoreError> {
        let ports = self.runs.ports();
        let mut taken = 0;
        loop {
            let page = ports.store.left_runs(ports.writer, since, SCAN_PAGE_ROWS).await?;
            let Some(last) = page.last() else { return Ok(taken) };
            since = Uuid::from_u128(last.run.id.as_u128().saturating_add(1));
            for left in page {
                let id = left.run.id;
                let Some(token) = ports.in_flight.adopt(id) else { continue };
                match made(&self.threads, ports, left, token).await {
                    Ok(found) => taken += usize::from(self.accept(Some(found))),
                    Err(RecoveryError::Plan(error @ PlanError::Graph(..))) => leave(ports, id, &error).await,
                    Err(error) => {
                        tracing::error!(run = %id, %error, "failed to resume a run; retrying later");
                    }
                }
            }
        }
    }

    /// Takes these runs up, whatever became of them, as many as there is time for; says how many.
    pub(crate) async fn adopt(&self, runs: &[Uuid]) -> usize {
        let ports = self.runs.ports();
        let end = ports.clock.monotonic() + ADOPT;
        let mut taken = 0;
        for run in runs {
            match take_up(&self.threads, ports, *run).await {
                Ok(found) => taken += usize::from(self.accept(found)),
                Err(RecoveryError::Plan(error @ PlanError::Graph(..))) => leave(ports, *run, &error).await,
                Err(error) => tracing::error!(%run, %error, "failed to resume a run; retrying later"),
            }
            if ports.clock.monotonic() >= end {
                break;
            }
        }
        taken
    }

    /// Tells the actor of a run here that its end was asked for.
    pub(crate) fn stop(&self, stop: StopRequest) {
        match stop.thread {
            Some(thread) => self.threads.stop(thread, stop.run),
            None => self.runs.stop(stop.run),
        }
    }

    fn accept(&self, found: Option<TakenUp>) -> bool {
        match found {
            Some(TakenUp::Turn(turn)) => self.threads.accept(turn),
            Some(TakenUp::Run(run)) => self.runs.accept(run),
            None => return false,
        }
        true
    }
}

/// The orphaned turns of a thread.
pub(crate) async fn of_thread(threads: &Threads, thread: ThreadId) -> Result<Vec<Accepted>, RecoveryError> {
    let ports = &threads.inner.ports.run;
    let runs = ports.store.unfinished_of_thread(thread, ports.writer).await?;
    let mut accepted = Vec::with_capacity(runs.len());
    for run in runs {
        match take_up(threads, ports, run.id).await {
            Ok(Some(TakenUp::Turn(turn))) => accepted.push(turn),
            Ok(_) => {}
            Err(RecoveryError::Plan(error @ PlanError::Graph(..))) => leave(ports, run.id, &error).await,
            Err(error) => return Err(error),
        }
    }
    Ok(accepted)
}

/// Leaves a run to a newer instance: this build cannot execute it, and never ends what another one can.
async fn leave(ports: &RunPorts, run: Uuid, error: &PlanError) {
    tracing::warn!(%run, %error, "this build cannot execute a run; leaving it to a newer instance");
    let Some(token) = ports.in_flight.adopt(run) else { return };
    match ports.store.put_back(ports.writer, run, ports.clock.now() + LEFT_FOR).await {
        Ok(()) => token.released(),
        // The token is dropped, so the next round tries again.
        Err(error) => tracing::warn!(%run, %error, "failed to put a run back into the queue"),
    }
}

/// An unfinished run that is not a turn, if it has no owner here.
pub(crate) async fn of_run(runs: &Registry, id: Uuid) -> Result<Option<AcceptedRun>, RecoveryError> {
    let Some((left, token)) = unfinished(runs.ports(), id).await? else { return Ok(None) };
    accepted_run(runs.ports(), left, token).await.map(Some)
}

/// `None` when the run has ended, is not here, or already has an owner.
async fn take_up(threads: &Threads, ports: &RunPorts, id: Uuid) -> Result<Option<TakenUp>, RecoveryError> {
    let Some((left, token)) = unfinished(ports, id).await? else { return Ok(None) };
    made(threads, ports, left, token).await.map(Some)
}

/// The run as it was left, if it is unfinished and this instance's, and the right to look after it.
async fn unfinished(ports: &RunPorts, id: Uuid) -> Result<Option<(LeftRun, RunToken)>, RecoveryError> {
    // An earlier life's last writes may still be on their way, and its end among them.
    if let Err(WriteError::Poisoned(_)) = ports.db.flush(id).await {
        ports.db.forgive(id);
    }
    // First the right: what is read without it may be over when it is used.
    let Some(token) = ports.in_flight.adopt(id) else { return Ok(None) };
    match ports.store.left_run(ports.writer, id).await? {
        Some(left) => Ok(Some((left, token))),
        None => {
            // Over, or in the queue, or with another instance: none of that comes back by itself.
            token.released();
            Ok(None)
        }
    }
}

async fn made(
    threads: &Threads,
    ports: &RunPorts,
    left: LeftRun,
    token: RunToken,
) -> Result<TakenUp, RecoveryError> {
    let run = &left.run;
    match (run.thread_id, run.stream_id, left.dialect) {
        (Some(thread), Some(stream), Some(dialect)) => {
            let (version, inputs) = readable_or_none(ports, run).await?;
            let turn = Turn {
                run: run.id,
                stream,
                thread,
                workspace: run.workspace_id,
                workflow: run.workflow_id,
                version,
                dialect,
                inputs: Arc::new(inputs),
                order: run.turn_order.unwrap_or(run.id),
                parked: run.parked,
                again: Again::stored(run.options.as_deref(), run.started_at.is_some()),
                progress: Progress::Recovered {
                    cut_off: run.started_at.is_some() && run.status == RunStatus::Running,
                },
            };
            let stop = run.cancel_requested;
            Ok(TakenUp::Turn(Accepted { turn, slot: threads.old_slot(thread), token, stop }))
        }
        _ => accepted_run(ports, left, token).await.map(TakenUp::Run),
    }
}

async fn accepted_run(
    ports: &RunPorts,
    left: LeftRun,
    token: RunToken,
) -> Result<AcceptedRun, RecoveryError> {
    let LeftRun { run, placed, .. } = left;
    let (version, inputs) = readable_or_none(ports, &run).await?;
    let made = workflow::Run { placed, ..workflow::Run::stored(&run, version, inputs) };
    Ok(AcceptedRun { run: made, token, stop: run.cancel_requested })
}

/// The run's version and inputs; no version when they cannot be read and never will be.
async fn readable_or_none(
    ports: &RunPorts,
    run: &StoredRun,
) -> Result<(Option<Arc<LoadedVersion>>, Value), RecoveryError> {
    match readable(ports, run).await {
        Ok((version, inputs)) => Ok((Some(version), inputs)),
        Err(RecoveryError::Store(error) | RecoveryError::Plan(PlanError::Store(error))) => Err(error.into()),
        Err(error @ RecoveryError::Plan(PlanError::Graph(..))) if !run.cancel_requested => Err(error),
        // It will not be better next time, and its readers wait.
        Err(error) => {
            tracing::error!(run = %run.id, %error, "failed to read a run; ending it");
            Ok((None, Value::Null))
        }
    }
}

async fn readable(ports: &RunPorts, run: &StoredRun) -> Result<(Arc<LoadedVersion>, Value), RecoveryError> {
    let version = ports.plans.version(run.version_id).await?;
    let inputs = stored_json(&run.inputs);
    Ok((version, inputs.map_err(|error| RecoveryError::Unreadable(run.id, error.to_string()))?))
}
