//! Runs that were accepted and have no end: after a start, after a takeover, after an actor's life.

use std::sync::Arc;

use kernel::ThreadId;
use store::StoreError;
use uuid::Uuid;

use crate::db::WriteError;
use crate::plans::PlanError;
use crate::thread::{Accepted, Threads};
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
    let runs = threads.inner.ports.store.unfinished_of_thread(thread, threads.inner.writer).await?;
    let mut accepted = Vec::with_capacity(runs.len());
    for run in runs {
        accepted.extend(take_up(threads, run.id).await?);
    }
    Ok(accepted)
}

/// Takes these runs up, whatever became of them; says how many.
pub(crate) async fn adopt(threads: &Threads, runs: &[Uuid]) -> usize {
    let mut taken = 0;
    for run in runs {
        match adopt_one(threads, *run).await {
            Ok(true) => taken += 1,
            Ok(false) => {}
            Err(error) => tracing::error!(%run, %error, "an unfinished run cannot be taken up now"),
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
    let ports = &threads.inner.ports;
    // An earlier life's last writes may still be on their way, and its end among them.
    if let Err(WriteError::Poisoned(_)) = ports.db.flush(id).await {
        ports.db.forgive(id);
    }
    let run = ports.store.run(id).await?;
    let Some(run) = run.filter(|run| !run.status.is_terminal()) else {
        threads.inner.in_flight.forget(id);
        return Ok(None);
    };
    let (Some(thread), Some(stream)) = (run.thread_id, run.stream_id) else { return Ok(None) };
    let unreadable = |text: String| RecoveryError::Unreadable(id, text);
    let version = threads.inner.plans.version(run.version_id).await?;
    let inputs = serde_json::from_str(&run.inputs).map_err(|error| unreadable(error.to_string()))?;
    let stored = ports.store.stream(stream).await?;
    let stored = stored.ok_or_else(|| unreadable("its stream is not there".to_owned()))?;
    let Some(token) = threads.inner.in_flight.adopt(id) else { return Ok(None) };
    let turn = Turn {
        run: id,
        stream,
        thread,
        workflow: run.workflow_id,
        version,
        dialect: stored.dialect,
        inputs: Arc::new(inputs),
        progress: Progress::Recovered,
    };
    Ok(Some(Accepted { turn, _slot: threads.old_slot(thread), token, stop: run.cancel_requested }))
}
