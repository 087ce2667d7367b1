//! Runs that may be the reason why the process ended: after two ends without progress a run executes alone, after three it fails.

use std::sync::Arc;
use std::time::Duration;

use store::{CRASH_LIMIT, CRASH_SUSPECT, StoreError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::RunPorts;
use super::kind::Progress;

/// Interval of the polls for a suspect's first journal row.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The decision about a run before it executes.
pub(crate) enum Clearance {
    /// It executes; a suspect with the permit to execute alone.
    Granted(Option<Alone>),
    /// Its stop was requested before it executed.
    Stopped,
    /// A shutdown has begun; the next process resumes the run.
    Draining,
}

/// The permit of a suspect: no other suspect of this process executes meanwhile.
pub(crate) struct Alone {
    _permit: OwnedSemaphorePermit,
}

/// Permits for suspects: one at a time.
pub(crate) fn permits() -> Arc<Semaphore> {
    Arc::new(Semaphore::new(1))
}

/// Waits until a run may execute.
pub(crate) async fn clearance(
    run: Uuid,
    progress: Progress,
    ports: &RunPorts,
    stop: &CancellationToken,
    draining: &CancellationToken,
) -> Result<Clearance, StoreError> {
    match progress {
        // Boxed: there are thousands of others.
        Progress::Recovered { crashes: CRASH_SUSPECT.., .. } => {
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
    // The semaphore is never closed.
    let Ok(permit) = permit else { return Ok(Clearance::Draining) };
    ports.store.set_alone(run, true).await?;
    tracing::info!(%run, "a run that may end the process executes alone");
    Ok(Clearance::Granted(Some(Alone { _permit: permit })))
}

/// Whether a run has seen so many ends that it fails.
pub(crate) fn has_crashed(progress: Progress) -> bool {
    matches!(progress, Progress::Recovered { crashes: CRASH_LIMIT.., .. })
}

/// Gives the permit back once the run has stored a journal row.
pub(crate) async fn give_back(alone: Option<Alone>, run: Uuid, ports: &RunPorts) {
    if let Some(alone) = alone {
        Box::pin(progressed(run, ports)).await;
        drop(alone);
    }
}

/// Waits until a run has stored a journal row since the last counted end.
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
