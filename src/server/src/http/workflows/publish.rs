//! Publishing a workflow as a chat, and taking that back.

use actix_web::HttpResponse;
use actix_web::web::Path;
use store::{AuditEntry, AuditTarget, Publication, StoredWorkflow};
use wire::Published;

use super::{records, requests};
use crate::http::change::Change;
use crate::http::error::ApiResult;
use crate::http::guard::{Caller, WorkflowsWrite};
use crate::http::idempotency::Reply;

/// 201 the first time, 200 when it only changes whether a login is asked for.
pub(super) async fn publish(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.check_publishes(workflow.workspace_id).await?;
    let wanted = change.wanted_if_any(requests::publish)?;
    let (base, by) = (change.public_base(), caller.name());
    let entry = audited(caller, "workflow.published", &workflow);
    let answer = change
        .make(async |changes| {
            let (published, publication) =
                changes.publish_workflow(workflow.id, wanted.require_login, by.as_deref()).await?;
            if publication != Publication::Same {
                changes.audit(&entry).await?;
            }
            let share_url = records::share_url(&base, workflow.id);
            let new = publication == Publication::New;
            Reply::made(new, &Published { share_url, workflow: records::workflow(published, &base) })
        })
        .await;
    caller.app().chat().forget(workflow.id);
    answer
}

/// Takes the publication back; as often as one likes.
pub(super) async fn revoke(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.check_publishes(workflow.workspace_id).await?;
    change.wants_no_more()?;
    let base = change.public_base();
    let entry = audited(caller, "workflow.unpublished", &workflow);
    let answer = change
        .make(async |changes| {
            let (private, was_public) = changes.unpublish_workflow(workflow.id).await?;
            if was_public {
                changes.audit(&entry).await?;
            }
            Reply::ok(&records::workflow(private, &base))
        })
        .await;
    caller.app().chat().forget(workflow.id);
    answer
}

pub(super) fn audited(
    caller: &Caller<WorkflowsWrite>,
    action: &'static str,
    workflow: &StoredWorkflow,
) -> AuditEntry {
    let target = AuditTarget { kind: "workflow", id: workflow.id.to_string() };
    caller.audit(action, target, Some(workflow.workspace_id), None)
}
