//! Workspaces: creates, changes and deletes them.

use store::{AuditTarget, Changes, DEFAULT_WORKSPACE, NewWorkspace, StoredWorkspace, WorkspaceChange};
use uuid::Uuid;
use wire::{AuditAction, ErrorCode, UpdateWorkspace};

use crate::{Decision, Refusal, Requester, apps};

/// Checks that the caller may create workspaces.
///
/// # Errors
/// [`ErrorCode::WorkspaceForbidden`].
pub fn check_creates(by: Requester<'_>) -> Decision<()> {
    if by.principal.may_make_workspaces() { Ok(()) } else { Err(Refusal::new(ErrorCode::WorkspaceForbidden)) }
}

/// Creates a workspace; the user who creates it becomes its owner.
///
/// # Errors
/// [`ErrorCode::WorkspaceSlugTaken`].
pub async fn create(
    changes: &mut Changes,
    by: Requester<'_>,
    slug: &str,
    name: &str,
) -> Decision<StoredWorkspace> {
    let made = changes.create_workspace(NewWorkspace { slug, name, owner: by.principal.user_id() }).await?;
    changes.audit(&by.audit(AuditAction::WorkspaceCreated, target(made.id), Some(made.id), None)).await?;
    Ok(made)
}

/// Changes a workspace's display name and settings. The slug stays: requests and tokens name the workspace by it.
///
/// # Errors
/// [`ErrorCode::WorkspaceNotFound`].
pub async fn update(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: &StoredWorkspace,
    wanted: UpdateWorkspace,
) -> Decision<StoredWorkspace> {
    let training_calls = wanted.training_calls.map(|setting| setting.as_str().to_owned());
    let change = WorkspaceChange { name: wanted.name, training_calls };
    let changed = changes.update_workspace(workspace.id, change).await?;
    let changed = changed.ok_or_else(|| Refusal::new(ErrorCode::WorkspaceNotFound))?;
    let id = workspace.id;
    if changed.name != workspace.name {
        changes.audit(&by.audit(AuditAction::WorkspaceRenamed, target(id), Some(id), None)).await?;
    }
    if changed.training_calls != workspace.training_calls {
        let action = AuditAction::WorkspaceTrainingCallsSet;
        let reason = Some(changed.training_calls.clone());
        changes.audit(&by.audit(action, target(id), Some(id), reason)).await?;
    }
    Ok(changed)
}

/// Checks that the caller may delete the workspace. Owners may, and callers with every right everywhere.
///
/// # Errors
/// [`ErrorCode::MissingScope`].
pub fn check_deletes(by: Requester<'_>, workspace: &StoredWorkspace) -> Decision<()> {
    if by.principal.may_delete_workspace(workspace.id) {
        return Ok(());
    }
    let message = "Missing required scopes: deleting a workspace requires the role owner";
    Err(Refusal::new(ErrorCode::MissingScope).with_message(message))
}

/// Deletes a workspace and its apps, and archives its workflows.
///
/// # Errors
/// [`ErrorCode::WorkspaceIsDefault`], [`ErrorCode::WorkspaceNotFound`].
pub async fn delete(changes: &mut Changes, by: Requester<'_>, workspace: &StoredWorkspace) -> Decision<()> {
    if workspace.slug == DEFAULT_WORKSPACE {
        return Err(Refusal::new(ErrorCode::WorkspaceIsDefault));
    }
    let id = workspace.id;
    let archived = changes.delete_workspace(id).await?;
    let archived = archived.ok_or_else(|| Refusal::new(ErrorCode::WorkspaceNotFound))?;
    for workflow in &archived {
        let target = AuditTarget { kind: "workflow", id: workflow.to_string() };
        let reason = Some("its workspace was deleted".to_owned());
        changes.audit(&by.audit(AuditAction::WorkflowArchived, target, Some(id), reason)).await?;
    }
    apps::delete_all(changes, by, id).await?;
    Ok(changes.audit(&by.audit(AuditAction::WorkspaceDeleted, target(id), Some(id), None)).await?)
}

fn target(id: Uuid) -> AuditTarget {
    AuditTarget { kind: "workspace", id: id.to_string() }
}
