//! Changing what a workflow says of itself.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use store::WorkflowChange;
use wire::UpdateWorkflow;

use super::{records, requests, told_of_handle};
use crate::http::body;
use crate::http::error::ApiResult;
use crate::http::guard::{Caller, WorkflowsWrite};
use crate::http::idempotency::{Once, Reply};
use crate::http::query::Params;

/// Changes what the body says, and nothing else.
pub(super) async fn update(
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
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::update_workflow(&body))?;
    let handle = wanted.handle.clone();
    let base = caller.app().public_base(&request);
    let answer = once
        .change(async |changes| {
            let changed = changes.change_workflow(workflow.id, change(wanted)).await?;
            Reply::ok(&records::workflow(changed, &base))
        })
        .await;
    caller.app().chat().forget(workflow.id);
    told_of_handle(&caller, answer, workflow.workspace_id, handle).await
}

fn change(wanted: UpdateWorkflow) -> WorkflowChange {
    let chat = wanted.chat.unwrap_or_default();
    WorkflowChange {
        name: wanted.name,
        handle: wanted.handle,
        description: wanted.description,
        tags: wanted.tags,
        start_prompts: chat.start_prompts,
        models: chat.models,
    }
}
