//! Workflows: creates, publishes, archives them and makes versions live.

use store::{AuditEntry, AuditTarget, Changes, NewWorkflow, Publication, StoreError, StoredWorkflow};
use uuid::Uuid;
use wire::{AuditAction, CreateWorkflow, ErrorCode, GateStatus};

use crate::{Decision, Refusal, Requester, handle};

/// Maximum numbered attempts for a handle made from a name.
const ATTEMPTS: usize = 100;

/// Checks that the caller may publish. In addition to the scope, members need the role admin or owner.
///
/// # Errors
/// [`ErrorCode::MissingScope`].
pub fn check_publishes(by: Requester<'_>, workspace: Uuid) -> Decision<()> {
    if by.principal.may_publish_in(workspace) {
        return Ok(());
    }
    let message = "Missing required scopes: publishing requires the role admin or owner";
    Err(Refusal::new(ErrorCode::MissingScope).with_message(message))
}

/// Creates a workflow. A given handle must be free; a handle made from the name gets a number if taken.
///
/// # Errors
/// [`ErrorCode::WorkflowHandleTaken`], [`ErrorCode::WorkspaceForbidden`] if the workspace was deleted meanwhile.
pub async fn create(
    changes: &mut Changes,
    workspace_id: Uuid,
    wanted: CreateWorkflow,
) -> Decision<StoredWorkflow> {
    if !changes.hold_workspace(workspace_id).await? {
        return Err(Refusal::new(ErrorCode::WorkspaceForbidden));
    }
    let attempts = if wanted.handle.is_some() { 1 } else { ATTEMPTS };
    let base = wanted.handle.unwrap_or_else(|| handle::from_name(&wanted.name));
    let mut attempt = 1;
    loop {
        let new = NewWorkflow {
            workspace_id,
            handle: handle::numbered(&base, attempt),
            name: wanted.name.clone(),
            description: wanted.description.clone(),
            tags: wanted.tags.clone(),
        };
        match changes.create_workflow(new).await {
            Err(StoreError::Taken(_)) if attempt < attempts => attempt += 1,
            other => return Ok(other?),
        }
    }
}

/// Publishes a workflow, or changes whether its chat requires a login; `None` leaves that unchanged. The flag says
/// whether the workflow was private before.
///
/// # Errors
/// [`ErrorCode::WorkflowArchived`], [`ErrorCode::VersionGateFailed`] if no version has passed the gate yet.
pub async fn publish(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    require_login: Option<bool>,
    author: Option<&str>,
) -> Decision<(StoredWorkflow, bool)> {
    if !workflow.is_public
        && changes.live_version(workflow.id).await?.is_none()
        && (workflow.latest_version.is_some()
            || changes.rollout(workflow.id).await?.is_some_and(|it| it.gate.is_some()))
    {
        let message = "No version of the workflow has passed its gate; none is live.";
        return Err(Refusal::new(ErrorCode::VersionGateFailed).with_message(message));
    }
    let (published, publication) = changes.publish_workflow(workflow.id, require_login, author).await?;
    if publication != Publication::Same {
        changes.audit(&entry(by, AuditAction::WorkflowPublished, workflow)).await?;
    }
    Ok((published, publication == Publication::New))
}

/// Ends a workflow's publication. Idempotent.
///
/// # Errors
/// If the database does not answer.
pub async fn unpublish(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<StoredWorkflow> {
    let (private, was_public) = changes.unpublish_workflow(workflow.id).await?;
    if was_public {
        changes.audit(&entry(by, AuditAction::WorkflowUnpublished, workflow)).await?;
    }
    Ok(private)
}

/// Rejects a version that has failed its gate, unless `force` is set.
pub(crate) async fn check_gate_of(
    changes: &mut Changes,
    workflow: &StoredWorkflow,
    number: i32,
    force: bool,
) -> Decision<()> {
    let gate = changes.version_gate(workflow.id, number).await?;
    match gate.filter(|gate| gate.status == GateStatus::Failed && !force) {
        Some(gate) => {
            let why = gate.error.unwrap_or_default();
            let message = format!("Version {number} has failed its gate: {why}.");
            Err(Refusal::new(ErrorCode::VersionGateFailed).with_message(message))
        }
        None => Ok(()),
    }
}

/// Makes a numbered version live; an older one is a rollback. `force` also allows a version that has failed its gate.
///
/// # Errors
/// [`ErrorCode::VersionNotFound`], [`ErrorCode::VersionGateFailed`], [`ErrorCode::WorkflowArchived`].
pub async fn set_live(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    number: i32,
    force: bool,
) -> Decision<StoredWorkflow> {
    check_gate_of(changes, workflow, number, force).await?;
    let reason = force.then(|| "forced".to_owned());
    let entry = AuditEntry { reason, ..entry(by, AuditAction::WorkflowLiveVersionSet, workflow) };
    let before = changes.set_live_version(workflow.id, number, entry).await?;
    before.ok_or_else(|| Refusal::new(ErrorCode::VersionNotFound))?;
    let latest_version = workflow.latest_version.max(Some(number));
    Ok(StoredWorkflow { live_version: Some(number), latest_version, ..workflow.clone() })
}

/// Archives a workflow, which ends its publication. Idempotent.
///
/// # Errors
/// [`ErrorCode::MissingScope`] if it was published meanwhile, and the caller may not publish.
pub async fn archive(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<StoredWorkflow> {
    if changes.is_public(workflow.id).await? {
        check_publishes(by, workflow.workspace_id)?;
    }
    let (archived, is_new) = changes.archive_workflow(workflow.id).await?;
    if is_new {
        changes.audit(&entry(by, AuditAction::WorkflowArchived, workflow)).await?;
    }
    Ok(archived)
}

/// Restores an archived workflow; other workflows stay unchanged. Does not restore its publication.
///
/// # Errors
/// If the database does not answer.
pub async fn restore(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
) -> Decision<StoredWorkflow> {
    let (restored, is_new) = changes.restore_workflow(workflow.id).await?;
    if is_new {
        changes.audit(&entry(by, AuditAction::WorkflowRestored, workflow)).await?;
    }
    Ok(restored)
}

pub(crate) fn entry(by: Requester<'_>, action: AuditAction, workflow: &StoredWorkflow) -> AuditEntry {
    let target = AuditTarget { kind: "workflow", id: workflow.id.to_string() };
    by.audit(action, target, Some(workflow.workspace_id), None)
}
