//! Triggers that start workflow runs automatically: configures and removes them.

use chrono::{DateTime, Utc};
use serde_json::Value;
use store::{AuditEntry, AuditTarget, Changes, CronSettings, StoredCron, StoredWebhook, StoredWorkflow};
use wire::{AuditAction, ErrorCode};

use crate::{Decision, Refusal, Requester};

/// Configures the schedule of a workflow, replacing any earlier one. `next`: the next time it fires.
///
/// # Errors
/// [`ErrorCode::WorkflowArchived`].
pub async fn set_cron(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    settings: &CronSettings,
    next: Option<DateTime<Utc>>,
) -> Decision<StoredCron> {
    let stored = changes.set_cron_trigger(workflow.id, settings, next).await?;
    let reason = format!("{} {}", settings.expression, settings.timezone);
    changes.audit(&entry(by, AuditAction::TriggerCronSet, workflow, Some(reason))).await?;
    Ok(stored)
}

/// Removes the schedule of a workflow; its runs continue.
///
/// # Errors
/// [`ErrorCode::TriggerNotFound`].
pub async fn remove_cron(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<()> {
    if !changes.remove_cron_trigger(workflow.id).await? {
        return Err(Refusal::new(ErrorCode::TriggerNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::TriggerCronRemoved, workflow, None)).await?)
}

/// Configures the webhook of a workflow, replacing any earlier one. `secrets` are sealed.
///
/// # Errors
/// [`ErrorCode::WorkflowArchived`].
pub async fn set_webhook(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    config: &Value,
    secrets: &[u8],
) -> Decision<StoredWebhook> {
    let stored = changes.set_webhook(workflow.id, config, secrets).await?;
    changes.audit(&entry(by, AuditAction::TriggerWebhookSet, workflow, None)).await?;
    Ok(stored)
}

/// Removes the webhook of a workflow; its runs continue.
///
/// # Errors
/// [`ErrorCode::TriggerNotFound`].
pub async fn remove_webhook(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<()> {
    if !changes.remove_webhook(workflow.id).await? {
        return Err(Refusal::new(ErrorCode::TriggerNotFound));
    }
    Ok(changes.audit(&entry(by, AuditAction::TriggerWebhookRemoved, workflow, None)).await?)
}

fn entry(
    by: Requester<'_>,
    action: AuditAction,
    workflow: &StoredWorkflow,
    reason: Option<String>,
) -> AuditEntry {
    let target = AuditTarget { kind: "workflow", id: workflow.id.to_string() };
    by.audit(action, target, Some(workflow.workspace_id), reason)
}
