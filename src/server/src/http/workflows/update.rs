//! Changing what a workflow says of itself.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path, Payload};
use store::{StoreError, WorkflowChange};
use wire::{UpdateWorkflow, WorkflowRecord};

use super::{handle_taken, records, requests};
use crate::http::body;
use crate::http::error::ApiResult;
use crate::http::extract::{Caller, WorkflowsWrite};
use crate::http::query::Params;

/// Changes what the body says, and nothing else.
pub(super) async fn update(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<WorkflowRecord>> {
    let workflow = caller.workflow(&name).await?;
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::update_workflow(&body))?;
    let handle = wanted.handle.clone();
    let changed = match caller.store().change_workflow(workflow.id, change(wanted)).await {
        Err(StoreError::Taken(_)) => {
            return Err(handle_taken(&caller, handle.unwrap_or_default(), workflow.workspace_id).await?);
        }
        other => other?,
    };
    caller.app().chat().forget(workflow.id);
    Ok(Json(records::workflow(changed, &caller.app().public_base(&request))))
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
