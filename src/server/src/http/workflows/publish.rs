//! Publishing a workflow as a chat, and taking that back.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use store::{AuditEntry, AuditTarget, StoredWorkflow};
use wire::Published;

use super::{records, requests};
use crate::http::error::ApiResult;
use crate::http::guard::{Caller, WorkflowsWrite};
use crate::http::idempotency::{Once, Reply};
use crate::http::query::Params;
use crate::http::{body, fields};

/// 201 the first time, 200 when it only changes whether a login is asked for.
pub(super) async fn publish(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let once = Once::of(&caller, &request, &body)?;
    if let Some(answer) = once.answered().await? {
        return Ok(answer);
    }
    let workflow = caller.workflow(&name).await?;
    caller.check_publishes(workflow.workspace_id).await?;
    let wanted = requests::publish(&body::object_or_nothing(&request, &body)?);
    let wanted = Params::of(&request).and(wanted)?;
    let (base, by) = (caller.app().public_base(&request), caller.name());
    let entry = audited(&caller, "workflow.published", &workflow);
    let answer = once
        .change(async |changes| {
            let (published, new) =
                changes.publish_workflow(workflow.id, wanted.require_login, by.as_deref()).await?;
            changes.audit(&entry).await?;
            let share_url = records::share_url(&base, workflow.id);
            Reply::made(new, &Published { share_url, workflow: records::workflow(published, &base) })
        })
        .await;
    caller.app().chat().forget(workflow.id);
    answer
}

/// Takes the publication back; as often as one likes.
pub(super) async fn revoke(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let once = Once::of(&caller, &request, &body)?;
    if let Some(answer) = once.answered().await? {
        return Ok(answer);
    }
    let workflow = caller.workflow(&name).await?;
    caller.check_publishes(workflow.workspace_id).await?;
    Params::of(&request).and(fields::nothing(&body::object_or_nothing(&request, &body)?))?;
    let base = caller.app().public_base(&request);
    let entry = audited(&caller, "workflow.unpublished", &workflow);
    let answer = once
        .change(async |changes| {
            let private = changes.unpublish_workflow(workflow.id).await?;
            if workflow.is_public {
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
