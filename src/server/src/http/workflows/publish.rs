//! Publishes a workflow as a chat, and revokes the publication.

use actix_web::HttpResponse;
use actix_web::web::Path;
use control::workflows;
use wire::Published;

use super::{records, requests};
use crate::http::change::Change;
use crate::http::error::ApiResult;
use crate::http::guard::WorkflowsWrite;
use crate::http::idempotency::ChangeReply;

/// Responds with 201 the first time, or with 200 if only the login requirement changes.
pub(super) async fn publish(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    let wanted = change.wanted_if_any(requests::publish)?;
    let (base, author) = (change.public_base(), caller.name());
    change
        .make(async |changes| {
            let (by, login) = (caller.requester(), wanted.require_login);
            let (published, new) =
                workflows::publish(changes, by, &workflow, login, author.as_deref()).await?;
            let share_url = records::share_url(&base, workflow.id);
            ChangeReply::made(new, &Published { share_url, workflow: records::workflow(published, &base) })
        })
        .await
}

/// Revokes the publication. Idempotent.
pub(super) async fn revoke(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    change.wants_no_more()?;
    let base = change.public_base();
    change
        .make(async |changes| {
            let private = workflows::unpublish(changes, caller.requester(), &workflow).await?;
            ChangeReply::ok(&records::workflow(private, &base))
        })
        .await
}
