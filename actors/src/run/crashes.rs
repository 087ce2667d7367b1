//! Runs that may crash the process: after two crashes without progress a run executes alone, after three it fails.

use std::sync::Arc;
use std::time::Duration;

use store::{CRASH_LIMIT, CRASH_SUSPECT, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::RunPorts;
use super::kind::RunProgress;

/// Interval of the polls for a suspect's first journal row.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Whether a run may execute.
pub(crate) enum Clearance {
    /// It may execute; a suspect holds the permit to execute alone.
    Granted(Option<Alone>),
    /// Its stop was requested before it started.
    Stopped,
    /// Shutdown has begun; the next process resumes the run.
    Draining,
}

/// A suspect's permit: no other suspect in this process executes meanwhile.
pub(crate) struct Alone {
    _permit: OwnedSemaphorePermit,
}

/// Creates the semaphore for suspects: one at a time.
pub(crate) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

/// Waits until a run may execute.
pub(crate) async fn clearance(
    run: Uuid,
    progress: RunProgress,
    ports: &RunPorts,
    stop: &CancellationToken,
    draining: &CancellationToken,
) -> Result<Clearance, StoreError> {
    match progress {
        // Boxed: rarely needed, and there may be thousands of these futures.
        RunProgress::Recovered { crashes: CRASH_SUSPECT.., .. } => {
            Box::pin(alone(run, ports, stop, draining)).await
        }
        _ => Ok(Clearance::Granted(None)),
    }
}

async fn alone(
    run: Uuid,
    ports: &RunPorts,
    stop: &CancellationToken,
    draining: &CancellationToken,
) -> Result<Clearance, StoreError> {
    let permit = tokio::select! {
        biased;
        () = stop.cancelled() => return Ok(Clearance::Stopped),
        () = draining.cancelled() => return Ok(Clearance::Draining),
        permit = Arc::clone(&ports.suspects).acquire_owned() => permit,
    };
    // Unreachable: the semaphore is never closed.
    let Ok(permit) = permit else { return Ok(Clearance::Draining) };
    ports.store.set_alone(run, true).await?;
    tracing::info!(%run, "executing a suspected run alone");
    Ok(Clearance::Granted(Some(Alone { _permit: permit })))
}

/// Whether a run has caused enough crashes to fail.
pub(crate) fn has_crashed(progress: RunProgress) -> bool {
    matches!(progress, RunProgress::Recovered { crashes: CRASH_LIMIT.., .. })
}

/// Releases the permit after the run has stored a journal row.
pub(crate) async fn give_back(alone: Option<Alone>, run: Uuid, ports: &RunPorts) {
    if let Some(alone) = alone {
        Box::pin(progressed(run, ports)).await;
        drop(alone);
    }
}

/// Waits until a run has stored a journal row after the last counted crash.
async fn progressed(run: Uuid, ports: &RunPorts) {
    loop {
        ports.clock.sleep(POLL_INTERVAL).await;
        match ports.store.has_progressed(run).await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) => tracing::warn!(%run, %error, "failed to read the progress of a run; retrying"),
        }
    }
}
