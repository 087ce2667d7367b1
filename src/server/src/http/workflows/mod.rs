//! Workflows and their versions.

mod handle;
mod publish;
mod records;
mod requests;
mod runnable_config;
mod versions;

use actix_web::web::{self, Data, Json, Path, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use store::{NewWorkflow, StoreError, StoredWorkflow, WorkflowRef};
use wire::{CreateWorkflow, ErrorCode, PublicWorkflow, WorkflowRecord};

use super::error::{ApiError, ApiResult};
use super::extract::{Caller, WorkflowsRead, WorkflowsWrite};
use super::query::Params;
use super::{App, body, get, resource};

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/api/workflows", "GET, HEAD, POST").route(get().to(list)).route(web::post().to(create)),
        )
        .service(resource("/api/workflows/check", "POST").route(web::post().to(versions::check)))
        .service(resource("/api/workflows/{ref}", "GET, HEAD").route(get().to(show)))
        .service(resource("/api/workflows/{ref}/public", "GET, HEAD").route(get().to(public)))
        .service(resource("/api/workflows/{ref}/versions", "POST").route(web::post().to(versions::create)))
        .service(
            resource("/api/workflows/{ref}/versions/{number}", "GET, HEAD").route(get().to(versions::show)),
        )
        .service(resource("/api/workflows/{ref}/publish", "POST").route(web::post().to(publish::publish)))
        .service(
            resource("/api/workflows/{ref}/publish/revoke", "POST").route(web::post().to(publish::revoke)),
        );
}

async fn list(caller: Caller<WorkflowsRead>, request: HttpRequest) -> ApiResult<Json<Vec<WorkflowRecord>>> {
    let workspace = caller.workspace().await?;
    let mut query = Params::of(&request);
    let with_archived = query.flag("include_archived");
    ApiError::refuse(query.finish())?;
    let found = caller.store().workflows(workspace, with_archived).await?;
    let base = caller.app().public_base(&request);
    Ok(Json(found.into_iter().map(|workflow| records::workflow(workflow, &base)).collect()))
}

async fn create(
    caller: Caller<WorkflowsWrite>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let body = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::create_workflow(&body))?;
    let stored = store_new(&caller, wanted).await?;
    let base = caller.app().public_base(&request);
    Ok(HttpResponse::Created().json(records::workflow(stored, &base)))
}

/// A handle that was asked for is taken or not; one made from the name gets a number when it is.
async fn store_new(caller: &Caller<WorkflowsWrite>, wanted: CreateWorkflow) -> ApiResult<StoredWorkflow> {
    let workspace_id = caller.workspace().await?;
    let asked = wanted.handle.is_some();
    let base = wanted.handle.unwrap_or_else(|| handle::from_name(&wanted.name));
    let attempts = if asked { 1 } else { 100 };
    for attempt in 1..=attempts {
        let new = NewWorkflow {
            workspace_id,
            handle: handle::numbered(&base, attempt),
            name: wanted.name.clone(),
            description: wanted.description.clone(),
            tags: wanted.tags.clone(),
        };
        match caller.store().create_workflow(new).await {
            Err(StoreError::Taken(_)) => {}
            other => return Ok(other?),
        }
    }
    Err(ApiError::new(ErrorCode::WorkflowHandleTaken))
}

async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<WorkflowRecord>> {
    let workflow = caller.workflow(&name).await?;
    ApiError::refuse(Params::of(&request).finish())?;
    Ok(Json(records::workflow(workflow, &caller.app().public_base(&request))))
}

/// What anybody may know; an unpublished workflow is not there for them.
async fn public(app: Data<App>, name: Path<String>, request: HttpRequest) -> ApiResult<Json<PublicWorkflow>> {
    let not_found = || ApiError::new(ErrorCode::WorkflowNotFound);
    let workspace = app.store().workspace_id(store::DEFAULT_WORKSPACE).await?.ok_or_else(not_found)?;
    let found = app.store().workflow(&WorkflowRef::parse(&name), workspace).await?;
    let published = found.filter(|workflow| workflow.is_public && workflow.archived_at.is_none());
    let workflow = published.ok_or_else(not_found)?;
    ApiError::refuse(Params::of(&request).finish())?;
    Ok(Json(records::public(workflow, &app.public_base(&request))))
}
