//! Watches a training or an evaluation to its end, unless the user detaches.

use std::time::Duration;

use kernel::{Clock, SystemClock};
use wire::{TrainingRecord, TrainingState};

use super::TrainingRef;
use super::display::TrainingDisplay;
use super::findings::TrainingFindings;
use crate::commands::signals::Interrupts;
use crate::options::ServiceSession;
use crate::output::CommandError;

/// Time within which a second Ctrl-C cancels instead of leaving.
const CANCEL_WINDOW: Duration = Duration::from_secs(3);

/// A finished training or evaluation.
pub(super) struct WatchedTraining {
    pub(super) at: TrainingRef,
    pub(super) record: TrainingRecord,
    pub(super) findings: TrainingFindings,
    /// Whether the user cancelled it here.
    pub(super) is_cancelled: bool,
}

/// Time without an event after which a run counts as queued.
const QUEUED_AFTER: Duration = Duration::from_secs(1);

/// Prints its events from the first to the last. The first Ctrl-C detaches, a second one within the window cancels.
pub(super) async fn watch(
    session: &ServiceSession,
    at: TrainingRef,
    known: &TrainingRecord,
    interrupts: &mut Interrupts,
) -> Result<WatchedTraining, CommandError> {
    let mut display = TrainingDisplay::new(session.output, &at);
    let is_queued = known.status == TrainingState::Queued;
    let is_cancelled = follow(session, &at, &mut display, is_queued, interrupts).await?;
    let findings = display.finish();
    let record = session.received(session.client.training(&at.workflow, &at.run).await)?;
    Ok(WatchedTraining { at, record, findings, is_cancelled })
}

/// Returns whether the user cancelled it.
async fn follow(
    session: &ServiceSession,
    at: &TrainingRef,
    display: &mut TrainingDisplay,
    mut is_queued: bool,
    interrupts: &mut Interrupts,
) -> Result<bool, CommandError> {
    let mut events = session.client.follow_training(&at.workflow, &at.run, None);
    let mut is_cancelled = false;
    loop {
        let next = tokio::select! {
            event = events.next() => Some(event),
            () = interrupts.told() => None,
            // Most runs start immediately.
            () = SystemClock::new().sleep(QUEUED_AFTER), if is_queued => {
                is_queued = false;
                display.note("Queued: it starts when a training slot of the service is free.");
                continue;
            }
        };
        is_queued = false;
        match next {
            Some(Ok(Some(event))) => display.take(&event.event)?,
            Some(Ok(None)) => return Ok(is_cancelled),
            Some(Err(error)) => {
                let hint = format!("It continues. To attach again: {}", at.attach_command());
                return Err(session.complaint(error).hint(hint).into());
            }
            None if is_cancelled => {
                display.tell(&format!("It may still run. To attach again: {}", at.attach_command()));
                return Err(CommandError::Interrupted);
            }
            None => {
                detach(at, display, interrupts).await?;
                display.note("Cancelling …");
                cancel(session, at, interrupts).await?;
                is_cancelled = true;
            }
        }
    }
}

/// Returns only if the user wants to cancel.
async fn detach(
    at: &TrainingRef,
    display: &mut TrainingDisplay,
    interrupts: &mut Interrupts,
) -> Result<(), CommandError> {
    let seconds = CANCEL_WINDOW.as_secs();
    display.tell(&format!("Detached; it continues. To attach again: {}", at.attach_command()));
    display.tell(&format!("Press Ctrl-C again within {seconds} seconds to cancel it."));
    tokio::select! {
        () = interrupts.told() => Ok(()),
        () = SystemClock::new().sleep(CANCEL_WINDOW) => Err(CommandError::Interrupted),
    }
}

/// Requests the cancellation; another Ctrl-C leaves.
async fn cancel(
    session: &ServiceSession,
    at: &TrainingRef,
    interrupts: &mut Interrupts,
) -> Result<(), CommandError> {
    let cancelled = tokio::select! {
        cancelled = session.client.cancel_training(&at.workflow, &at.run) => cancelled,
        () = interrupts.told() => return Err(CommandError::Interrupted),
    };
    match cancelled {
        Ok(_) => Ok(()),
        // It ended first; its last events follow.
        Err(error) if error.code() == Some("run.not_active") => Ok(()),
        Err(error) => {
            let hint = format!("It continues. To attach again: {}", at.attach_command());
            Err(session.complaint(error).hint(hint).into())
        }
    }
}
