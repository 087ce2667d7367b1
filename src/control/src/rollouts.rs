//! Workflow rollouts: sets the gate and the canary, and promotes a canary.

use store::{AuditEntry, Changes, StoredCanary, StoredRollout, StoredWorkflow};
use wire::{AuditAction, CanaryOutcome, ErrorCode, PutRollout, RolloutCanary, RolloutGate};

use crate::workflows::{self, entry};
use crate::{Decision, Refusal, Requester};

/// Sets the gate and the canary; removes those that are absent. `gate_evaluation`: the gate's evaluation, with fixed
/// versions. If the canary is the live version, the version before it becomes live.
///
/// # Errors
/// [`ErrorCode::VersionNotFound`], [`ErrorCode::VersionGateFailed`] for a canary that has failed its gate,
/// [`ErrorCode::InvalidRequest`], [`ErrorCode::WorkflowArchived`].
pub async fn set(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    wanted: PutRollout,
    gate_evaluation: Option<String>,
) -> Decision<StoredRollout> {
    changes.hold_live_version(workflow.id).await?;
    if let Some(canary) = wanted.canary {
        prepare_canary(changes, by, workflow, canary).await?;
    }
    let known = changes.rollout(workflow.id).await?;
    let mut last_canary = known.as_ref().and_then(|known| known.last_canary.clone());
    let running = known.as_ref().and_then(|known| known.canary);
    let same = |known: &StoredCanary| wanted.canary.is_some_and(|canary| canary.version == known.version);
    if let Some(removed) = running.filter(|running| !same(running)) {
        last_canary = Some(changes.ended_canary(removed, CanaryOutcome::Removed));
    }
    let canary = wanted.canary.map(|canary| StoredCanary {
        version: canary.version,
        percent: canary.percent,
        promote_after_turns: canary.promote_after_turns,
        since: running.filter(same).map_or_else(|| changes.now(), |running| running.since),
    });
    let rollout = StoredRollout {
        workflow_id: workflow.id,
        workspace_id: workflow.workspace_id,
        gate: wanted.gate,
        gate_evaluation,
        canary,
        last_canary,
    };
    if known.as_ref() != Some(&rollout) {
        changes.put_rollout(&rollout).await?;
        let entry = entry(by, AuditAction::WorkflowRolloutSet, workflow);
        changes.audit(&AuditEntry { reason: Some(in_words(&rollout)), ..entry }).await?;
    }
    Ok(rollout)
}

async fn prepare_canary(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    canary: RolloutCanary,
) -> Decision<()> {
    workflows::check_gate_of(changes, workflow, canary.version, false).await?;
    let invalid = |message: &str| Refusal::new(ErrorCode::InvalidRequest).with_message(message);
    let live = changes.live_version(workflow.id).await?;
    if live.is_some_and(|live| canary.version < live) && canary.promote_after_turns.is_some() {
        return Err(invalid("A version that is older than the live one does not become live automatically."));
    }
    if live == Some(canary.version) {
        let before = changes.version_before(workflow.id, canary.version).await?;
        let before = before.ok_or_else(|| {
            invalid("The version of the canary is the only version that can be live; save another one first.")
        })?;
        workflows::set_live(changes, by, workflow, before, false).await?;
    }
    Ok(())
}

/// Makes the canary live at once.
///
/// # Errors
/// [`ErrorCode::VersionNotFound`] without a canary, [`ErrorCode::VersionGateFailed`] if it has failed its gate
/// meanwhile, [`ErrorCode::WorkflowArchived`].
pub async fn promote(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<StoredRollout> {
    changes.hold_live_version(workflow.id).await?;
    let running = changes.rollout(workflow.id).await?.and_then(|rollout| rollout.canary);
    let canary = running.ok_or_else(|| {
        Refusal::new(ErrorCode::VersionNotFound).with_message("The workflow has no canary to promote.")
    })?;
    workflows::set_live(changes, by, workflow, canary.version, false).await?;
    let entry = entry(by, AuditAction::WorkflowCanaryPromoted, workflow);
    let reason = Some(format!("version {}", canary.version));
    changes.audit(&AuditEntry { reason, ..entry }).await?;
    changes.rollout(workflow.id).await?.ok_or_else(|| Refusal::new(ErrorCode::Internal))
}

fn in_words(rollout: &StoredRollout) -> String {
    let gate = rollout.gate.as_ref().map_or_else(
        || "no gate".to_owned(),
        |gate| {
            let version = gate.dataset_version.unwrap_or_default();
            let RolloutGate { dataset, threshold, max_drop, .. } = gate;
            format!("gate: dataset {dataset} version {version}, threshold {threshold}, drop {max_drop}")
        },
    );
    let canary = rollout.canary.map_or_else(
        || "no canary".to_owned(),
        |canary| format!("canary: version {}, {} %", canary.version, canary.percent),
    );
    format!("{gate}; {canary}")
}
