//! Orders a thread's turns across instances.

use std::sync::atomic::Ordering;
use std::time::Duration;

use store::{StoreError, TurnStart};
use tokio_util::sync::CancellationToken;

use super::TurnOf;
use crate::run::{RunPorts, SharedPorts};

/// Interval of the polls whether a turn may start while other instances have turns in its thread.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Waits until no other instance executes a turn in the thread or has one before this one. Turns on a dead instance are
/// taken over meanwhile and follow. Returns whether this instance still owns the turn.
pub(super) async fn in_order(
    run: &TurnOf,
    ports: &RunPorts,
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let SharedPorts { store, clock, others, writer, .. } = &**ports;
    while others.load(Ordering::Relaxed) && !stop.is_cancelled() {
        match store.start_turn(run.own.thread, run.own.order, run.id, *writer).await? {
            TurnStart::Started => break,
            TurnStart::NotOurs => return Ok(false),
            TurnStart::Waits => clock.sleep(POLL_INTERVAL).await,
        }
    }
    Ok(true)
}
