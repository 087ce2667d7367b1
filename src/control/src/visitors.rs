//! Chat visitors: checks who may see and change their threads, and erases their data.

use auth::principal::Actor;
use auth::scope::Scope;
use kernel::ThreadId;
use ring::digest::{SHA256, digest};
use store::{
    AuditEntry, AuditOutcome, AuditTarget, Changes, ChatVisitor, Erasure, StoreError, StoredWorkflow,
};
use uuid::Uuid;
use wire::chat::ThreadStatus;
use wire::{AuditAction, ErrorCode};

use crate::{Decision, Refusal, Requester};

/// Whether the caller may read, change and erase the content of visitors in a workspace that they have entered.
#[must_use]
pub fn may_manage(by: Requester<'_>, workspace: Uuid) -> bool {
    by.principal.may(Scope::WorkflowsWrite).is_ok() && by.principal.may_publish_in(workspace)
}

/// Checks that the caller may read, change and erase visitors' content. This takes the right to publish the chat.
///
/// # Errors
/// [`ErrorCode::MissingScope`].
pub fn check_may_manage(by: Requester<'_>, workspace: Uuid) -> Decision<()> {
    if by.principal.may_publish_in(workspace) {
        return Ok(());
    }
    let message = "Missing required scopes: the threads of visitors require the role admin or owner";
    Err(Refusal::new(ErrorCode::MissingScope).with_message(message))
}

/// Changes a thread's title or status; `None` leaves a field unchanged.
///
/// # Errors
/// [`ErrorCode::ThreadNotFound`].
pub async fn change_thread(
    changes: &mut Changes,
    by: Requester<'_>,
    workflow: &StoredWorkflow,
    thread: ThreadId,
    title: Option<&str>,
    status: Option<&ThreadStatus>,
) -> Decision<()> {
    if !changes.change_thread(workflow.id, thread, title, status).await? {
        return Err(Refusal::new(ErrorCode::ThreadNotFound));
    }
    let target = AuditTarget { kind: "workflow", id: workflow.id.to_string() };
    let title = title.map(|_| "title".to_owned());
    let status = status.map(|status| format!("status {}", status.as_str()));
    let changed: Vec<String> = title.into_iter().chain(status).collect();
    let reason = Some(format!("{thread}: {}", changed.join(", ")));
    let entry = by.audit(AuditAction::ChatThreadChanged, target, Some(workflow.workspace_id), reason);
    Ok(changes.audit(&entry).await?)
}

/// Records the export of a visitor's data. The caller must be allowed to read it.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn export(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: Uuid,
    visitor: &ChatVisitor,
) -> Result<(), StoreError> {
    let reason = Some(pseudonym(visitor));
    let entry = by.audit(AuditAction::ChatVisitorExported, target(visitor), Some(workspace), reason);
    changes.audit(&entry).await
}

/// Requests the erasure of a visitor's data. The caller must be allowed to read it. Returns the request and the
/// visitor's thread count.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn erase(
    changes: &mut Changes,
    by: Requester<'_>,
    workspace: Uuid,
    visitor: &ChatVisitor,
) -> Result<(Erasure, u64), StoreError> {
    let reason = Some(pseudonym(visitor));
    let entry = by.audit(AuditAction::ChatVisitorErased, target(visitor), Some(workspace), reason);
    changes.audit(&entry).await?;
    changes.request_erasure(visitor).await
}

/// Requests the erasure of the calling visitor's data. The audit entry contains neither their id nor their address.
///
/// # Errors
/// [`StoreError`] if the database does not answer.
pub async fn erase_own(
    changes: &mut Changes,
    workspace: Uuid,
    visitor: &ChatVisitor,
    request_id: Option<&str>,
) -> Result<(Erasure, u64), StoreError> {
    let entry = AuditEntry {
        actor: Actor::ANONYMOUS,
        action: AuditAction::ChatVisitorErased,
        target: Some(target(visitor)),
        workspace: Some(workspace),
        outcome: AuditOutcome::Success,
        reason: Some(pseudonym(visitor)),
        address: None,
        request_id: request_id.map(str::to_owned),
    };
    changes.audit(&entry).await?;
    changes.request_erasure(visitor).await
}

fn target(visitor: &ChatVisitor) -> AuditTarget {
    AuditTarget { kind: "workflow", id: visitor.workflow.to_string() }
}

/// Identifies a visitor only to readers who already know the id.
fn pseudonym(visitor: &ChatVisitor) -> String {
    let name = format!("{} {}", visitor.workflow, visitor.name());
    let digest = hex::encode(digest(&SHA256, name.as_bytes()));
    format!("visitor {}", digest.get(..16).unwrap_or_default())
}
