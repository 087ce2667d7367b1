//! Starts a training or an evaluation.

use kernel::{Clock, SystemClock};
use wire::{StartTraining, TrainingRecord};

use super::TrainingRef;
use super::request::RequestFiles;
use crate::commands::run::{ATTEMPTS, PAUSE, may_have_begun};
use crate::commands::signals::Interrupts;
use crate::options::{ServiceSession, new_key};
use crate::output::{CommandError, complain};

/// Starts it; retries a lost response with the same id, which cannot start a second one. Ctrl-C leaves.
pub(super) async fn start(
    session: &ServiceSession,
    workflow: &str,
    wanted: StartTraining,
    files: &RequestFiles,
    interrupts: &mut Interrupts,
) -> Result<TrainingRecord, CommandError> {
    let run = new_key()?;
    let wanted = StartTraining { run_id: Some(run.clone()), ..wanted };
    tokio::select! {
        started = send(session, workflow, &wanted, files) => started,
        () = interrupts.told() => {
            let at = TrainingRef { workflow: workflow.to_owned(), run };
            complain(format_args!("The start is not confirmed. If it started: {}", at.attach_command()));
            Err(CommandError::Interrupted)
        }
    }
}

async fn send(
    session: &ServiceSession,
    workflow: &str,
    wanted: &StartTraining,
    files: &RequestFiles,
) -> Result<TrainingRecord, CommandError> {
    let mut attempt = 1;
    loop {
        match session.client.start_training(workflow, wanted).await {
            Ok(record) => return Ok(record),
            Err(error) if attempt < ATTEMPTS && may_have_begun(&error, attempt) => {}
            Err(error) => return Err(session.complaint(error).located(files).about(workflow).into()),
        }
        attempt += 1;
        SystemClock::new().sleep(PAUSE).await;
    }
}
