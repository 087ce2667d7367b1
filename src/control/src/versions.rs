//! Versions: saves them and thereby makes them live.

use store::{AuditEntry, Changes, NewVersion, StoredVersion, StoredWorkflow};
use wire::{AuditAction, GateStatus, LiveAfterSave, LiveReason, VersionGate};

use crate::workflows::entry;
use crate::{Decision, Requester};

/// A saved version, and the live version after the save.
#[derive(Debug)]
pub struct Saved {
    /// The version: a new one, or the latest one if that has the same content.
    pub version: StoredVersion,
    /// Whether it is a new one.
    pub is_new: bool,
    /// The decision of its gate.
    pub gate: Option<VersionGate>,
    /// The live version.
    pub live: LiveAfterSave,
}

/// Saves a version and makes it live, unless its gate or a canary decides that later. If the latest version has the
/// same content and another version was made live by hand, the latest one becomes live again.
///
/// # Errors
/// [`wire::ErrorCode::WorkflowArchived`].
pub async fn save(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    new: NewVersion,
) -> Decision<Saved> {
    let (version, is_new) = changes.save_version(new).await?;
    let number = version.number.unwrap_or_default();
    let gate = changes.version_gate(workflow.id, number).await?;
    let live = changes.live_version(workflow.id).await?;
    let reason = match live == Some(number) {
        true => LiveReason::Saved,
        false => match held_by(changes, workflow, gate.as_ref()).await? {
            Some(reason) => reason,
            None => {
                let reason = Some("saved again".to_owned());
                let entry = AuditEntry { reason, ..entry(by, AuditAction::WorkflowLiveVersionSet, workflow) };
                changes.set_live_version(workflow.id, number, entry).await?;
                LiveReason::Restored
            }
        },
    };
    let version_live = if reason == LiveReason::Restored { Some(number) } else { live };
    Ok(Saved { version, is_new, gate, live: LiveAfterSave { version: version_live, reason } })
}

/// The reason why a save does not make the version live.
async fn held_by(
    changes: &mut Changes,
    workflow: &StoredWorkflow,
    gate: Option<&VersionGate>,
) -> Decision<Option<LiveReason>> {
    let rollout = changes.rollout(workflow.id).await?;
    let has_gate = rollout.as_ref().is_some_and(|rollout| rollout.gate.is_some());
    let is_gated = gate.map_or(has_gate, |gate| gate.status != GateStatus::Passed);
    let has_canary = rollout.is_some_and(|rollout| rollout.canary.is_some());
    Ok(match (is_gated, has_canary) {
        (true, _) => Some(LiveReason::Gate),
        (false, true) => Some(LiveReason::Canary),
        (false, false) => None,
    })
}
