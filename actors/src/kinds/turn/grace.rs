//! The grace period of a turn without readers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;
use wire::chat::Dialect;

use super::TurnOf;
use crate::run::RunPorts;
use crate::run::kind::RunProgress;

/// Minimum grace after a recovery.
const RECONNECT: Duration = Duration::from_secs(10);
/// Interval of the polls for readers on other instances while this one has none.
const PRESENCE_PAUSE: Duration = Duration::from_secs(1);

/// Grace period of a turn without a reader, by its stream's dialect; `None`: to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For the interface dialect, whose clients stop a turn with a request.
    pub interface: Option<Duration>,
    /// For the ChatKit dialect, whose clients stop a turn by closing the connection.
    pub chatkit: Option<Duration>,
}

impl Grace {
    pub(super) fn for_dialect(self, dialect: Dialect) -> Option<Duration> {
        match dialect {
            Dialect::Interface => self.interface,
            Dialect::Chatkit => self.chatkit,
        }
    }
}

/// Ends when the stream has had no reader on any instance for the whole grace. The countdown pauses while the database
/// cannot tell whether another instance has a reader. A turn resumed from the queue continues without readers until the
/// first one connects.
pub(super) async fn abandoned(
    grace: Option<Duration>,
    run: &TurnOf,
    mut readers: watch::Receiver<usize>,
    ports: &RunPorts,
) {
    let Some(grace) = grace else { return std::future::pending().await };
    // The crash disconnected its readers, which need time to reconnect.
    let is_new = matches!(run.progress, RunProgress::New { .. });
    let grace = if is_new { grace } else { grace.max(RECONNECT) };
    let (clock, stream) = (&*ports.clock, run.stream);
    if run.parked > 0 && !has_reader(&mut readers, stream, ports).await {
        return std::future::pending().await;
    }
    loop {
        if readers.wait_for(|readers| *readers == 0).await.is_err() {
            return std::future::pending().await;
        }
        let mut left = grace;
        loop {
            let pause = left.min(PRESENCE_PAUSE);
            let began = clock.monotonic();
            if kernel::timeout(clock, pause, readers.wait_for(|readers| *readers > 0)).await.is_some() {
                break;
            }
            // Boxed: rarely used, and large compared with the rest of the turn.
            match Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await {
                Ok(true) => {
                    left = grace;
                    // With a grace of 0 the loop would not pause.
                    clock.sleep(PRESENCE_PAUSE.saturating_sub(grace)).await;
                    continue;
                }
                Ok(false) => left = left.saturating_sub(clock.monotonic().saturating_sub(began).max(pause)),
                Err(error) => {
                    tracing::warn!(%error, "failed to poll readers on other instances; retrying");
                    clock.sleep(PRESENCE_PAUSE).await;
                    continue;
                }
            }
            // A reader may have connected during the query.
            if left.is_zero() && *readers.borrow() == 0 {
                return;
            }
        }
    }
}

/// Waits for the first reader on any instance. Returns `false` if none can connect any more.
async fn has_reader(readers: &mut watch::Receiver<usize>, stream: Uuid, ports: &RunPorts) -> bool {
    loop {
        let here = readers.wait_for(|readers| *readers > 0);
        if let Some(here) = kernel::timeout(&*ports.clock, PRESENCE_PAUSE, here).await {
            return here.is_ok();
        }
        // If the database does not answer, the query is retried.
        if ports.others.load(Ordering::Relaxed)
            && Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await.unwrap_or(false)
        {
            return true;
        }
    }
}
