//! Finds a checkpoint by the user's reference.

use wire::CheckpointRecord;

use crate::complaint::Complaint;
use crate::options::ServiceSession;
use crate::output::CommandError;

/// Maximum checkpoints in a list.
const MOST: u32 = 200;

/// Finds a checkpoint by number or id.
pub(super) async fn find(
    session: &ServiceSession,
    workflow: &str,
    name: &str,
) -> Result<CheckpointRecord, CommandError> {
    let failed = |error| CommandError::from(session.complaint(error).about(workflow));
    let Ok(number) = name.parse::<i64>() else {
        return session.client.checkpoint(workflow, name).await.map_err(failed);
    };
    let newest = session.client.checkpoints(workflow, Some(MOST), false).await.map_err(failed)?;
    newest.into_iter().find(|checkpoint| checkpoint.config_version == number).ok_or_else(|| {
        let message = format!("{workflow} has no checkpoint {number} among its newest {MOST}");
        let complaint = Complaint::told(message, Some("checkpoint.not_found".to_owned()));
        complaint.hint("An older checkpoint is found by its id.").about(workflow).into()
    })
}
