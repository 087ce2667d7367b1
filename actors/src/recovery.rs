//! Runs that were accepted and have no end: after a start, after a takeover, after an actor's life.

use std::sync::Arc;
use std::time::Duration;

use kernel::ThreadId;
use serde_json::Value;
use store::{StoreError, StoredRun};
use uuid::Uuid;
use wire::chat::Dialect;

use crate::db::WriteError;
use crate::plans::{LoadedVersion, PlanError};
use crate::thread::{Accepted, Threads};
use crate::turn::text::stored_json;
use crate::turn::{Progress, Turn};

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

/// The unfinished turns of a thread that nobody looks after.
pub(crate) async fn of_thread(threads: &Threads, thread: ThreadId) -> Result<Vec<Accepted>, RecoveryError> {
    let runs = threads.inner.ports.run.store.unfinished_of_thread(thread, threads.inner.writer).await?;
    let mut accepted = Vec::with_capacity(runs.len());
    for run in runs {
        accepted.extend(take_up(threads, run.id).await?);
    }
    Ok(accepted)
}

/// Runs that one look at the database reads.
const PAGE: i64 = 500;

/// Takes up every turn that an earlier life of this writer left, from `since` on; says how many.
///
/// It has to end before anything new is begun, because the turns of a thread go on in their order. Nothing of these
/// runs is on its way in this process, so a page of them takes a single look.
pub(crate) async fn earlier_life(threads: &Threads, mut since: Uuid) -> Result<usize, StoreError> {
    let mut taken = 0;
    loop {
        let page = threads.inner.ports.run.store.unfinished_runs(threads.inner.writer, since, PAGE).await?;
        let Some((last, _)) = page.last() else { return Ok(taken) };
        since = Uuid::from_u128(last.id.as_u128().saturating_add(1));
        for (run, dialect) in page {
            let id = run.id;
            match accepted(threads, run, dialect).await {
                Ok(Some(accepted)) => {
                    threads.accept(accepted);
                    taken += 1;
                }
                Ok(None) => {}
                Err(error) => tracing::error!(run = %id, %error, "an unfinished run cannot be taken up now"),
            }
        }
    }
}

/// How long runs are taken up before the lease is looked after again; what is left stays for the next round.
const ADOPT: Duration = Duration::from_secs(2);

/// Takes these runs up, whatever became of them, as many as there is time for; says how many.
pub(crate) async fn adopt(threads: &Threads, runs: &[Uuid]) -> usize {
    let clock = &threads.inner.ports.run.clock;
    let end = clock.monotonic() + ADOPT;
    let mut taken = 0;
    for run in runs {
        match adopt_one(threads, *run).await {
            Ok(true) => taken += 1,
            Ok(false) => {}
            Err(error) => tracing::error!(%run, %error, "an unfinished run cannot be taken up now"),
        }
        if clock.monotonic() >= end {
            break;
        }
    }
    taken
}

async fn adopt_one(threads: &Threads, id: Uuid) -> Result<bool, RecoveryError> {
    let Some(accepted) = take_up(threads, id).await? else { return Ok(false) };
    threads.accept(accepted);
    Ok(true)
}

/// `None` when the run is over, somebody looks after it already, or it is no turn.
async fn take_up(threads: &Threads, id: Uuid) -> Result<Option<Accepted>, RecoveryError> {
    let ports = &threads.inner.ports.run;
    // An earlier life's last writes may still be on their way, and its end among them.
    if let Err(WriteError::Poisoned(_)) = ports.db.flush(id).await {
        ports.db.forgive(id);
    }
    let run = ports.store.run(id).await?;
    let Some(run) = run.filter(|run| !run.status.is_terminal()) else {
        threads.inner.in_flight.forget(id);
        return Ok(None);
    };
    let Some(stream) = run.stream_id else { return Ok(None) };
    let stored = ports.store.stream(stream).await?;
    let stored = stored.ok_or_else(|| RecoveryError::Unreadable(id, "its stream is not there".to_owned()))?;
    accepted(threads, run, stored.dialect).await
}

/// An unfinished run as a turn of its thread.
async fn accepted(
    threads: &Threads,
    run: StoredRun,
    dialect: Option<Dialect>,
) -> Result<Option<Accepted>, RecoveryError> {
    let id = run.id;
    let (Some(thread), Some(stream), Some(dialect)) = (run.thread_id, run.stream_id, dialect) else {
        return Ok(None);
    };
    let (version, inputs) = match readable(threads, &run).await {
        Ok((version, inputs)) => (Some(version), inputs),
        Err(RecoveryError::Store(error) | RecoveryError::Plan(PlanError::Store(error))) => {
            return Err(error.into());
        }
        // It will not be better next time, and its readers wait.
        Err(error) => {
            tracing::error!(run = %id, %error, "a run cannot be read; it is ended");
            (None, Value::Null)
        }
    };
    let Some(token) = threads.inner.in_flight.adopt(id) else { return Ok(None) };
    let turn = Turn {
        run: id,
        stream,
        thread,
        workspace: run.workspace_id,
        workflow: run.workflow_id,
        version,
        dialect,
        inputs: Arc::new(inputs),
        progress: Progress::Recovered,
    };
    Ok(Some(Accepted { turn, _slot: threads.old_slot(thread), token, stop: run.cancel_requested }))
}

async fn readable(threads: &Threads, run: &StoredRun) -> Result<(Arc<LoadedVersion>, Value), RecoveryError> {
    let version = threads.inner.ports.run.plans.version(run.version_id).await?;
    let inputs = stored_json(&run.inputs);
    Ok((version, inputs.map_err(|error| RecoveryError::Unreadable(run.id, error.to_string()))?))
}
