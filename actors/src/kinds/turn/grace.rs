//! How long a turn continues without readers.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use uuid::Uuid;
use wire::chat::Dialect;

use super::TurnOf;
use crate::run::RunPorts;
use crate::run::kind::Progress;

/// Minimum grace of a turn that was recovered.
const RECONNECT: Duration = Duration::from_secs(10);
/// Interval of the polls for readers on other instances while there are none here.
const PRESENCE_PAUSE: Duration = Duration::from_secs(1);

/// How long a turn continues without a reader, by the dialect of its stream; `None`: to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grace {
    /// For the interface's dialect, whose clients stop a turn with a request.
    pub interface: Option<Duration>,
    /// For ChatKit's dialect, whose clients stop a turn by closing the connection.
    pub chatkit: Option<Duration>,
}

impl Grace {
    pub(super) fn of(self, dialect: Dialect) -> Option<Duration> {
        match dialect {
            Dialect::Interface => self.interface,
            Dialect::Chatkit => self.chatkit,
        }
    }
}

/// Ends when the stream has had no reader on any instance for the whole grace. The countdown pauses while the database
/// cannot say whether another instance has a reader. A turn that resumed from the queue continues without readers until it
/// has had one.
pub(super) async fn abandoned(
    grace: Option<Duration>,
    run: &TurnOf,
    mut readers: watch::Receiver<usize>,
    ports: &RunPorts,
) {
    let Some(grace) = grace else { return std::future::pending().await };
    // A crash has disconnected its readers, who need a moment to reconnect.
    let is_new = matches!(run.progress, Progress::New { .. });
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
            // Boxed: rarely used, and large compared with the rest of a turn.
            match Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await {
                Ok(true) => {
                    left = grace;
                    // With a grace of 0 the loop would have no pause.
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
            // A reader may have come during the query.
            if left.is_zero() && *readers.borrow() == 0 {
                return;
            }
        }
    }
}

/// Waits for the first reader, on whichever instance. Returns `false` if none can come any more.
async fn has_reader(readers: &mut watch::Receiver<usize>, stream: Uuid, ports: &RunPorts) -> bool {
    loop {
        let here = readers.wait_for(|readers| *readers > 0);
        if let Some(here) = kernel::timeout(&*ports.clock, PRESENCE_PAUSE, here).await {
            return here.is_ok();
        }
        // A database that does not answer is asked again.
        if ports.others.load(Ordering::Relaxed)
            && Box::pin(ports.store.is_read_elsewhere(stream, ports.writer)).await.unwrap_or(false)
        {
            return true;
        }
    }
}
