//! Publishing a workflow as a chat, and taking that back.

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use wire::{ErrorCode, Published, WorkflowRecord};

use super::{records, requests};
use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Caller, WorkflowsWrite};
use crate::http::query::Params;

/// 201 the first time, 200 when it only changes whether a login is asked for.
pub(super) async fn publish(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let workflow = caller.workflow(&name).await?;
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let body = body::object_or_nothing(&request, &body)?;
    let wanted = Params::of(&request).and(requests::publish(&body))?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let published = caller.store().publish_workflow(workflow.id, wanted.require_login, caller.name()).await?;
    caller.app().chat().forget(workflow.id);
    let base = caller.app().public_base(&request);
    let answer = Published {
        share_url: records::share_url(&base, workflow.id),
        workflow: records::workflow(published, &base),
    };
    let mut response = if workflow.is_public { HttpResponse::Ok() } else { HttpResponse::Created() };
    Ok(response.json(answer))
}

pub(super) async fn revoke(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<WorkflowRecord>> {
    let workflow = caller.workflow(&name).await?;
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    Params::of(&request).and(requests::nothing(&body::object_or_nothing(&request, &body)?))?;
    let private = caller.store().unpublish_workflow(workflow.id).await?;
    caller.app().chat().forget(workflow.id);
    Ok(Json(records::workflow(private, &caller.app().public_base(&request))))
}
