//! Versions: checked when they are saved, frozen from then on.

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use serde_json::{Value, json};
use store::NewVersion;
use wire::{CreateVersion, ErrorCode, FieldError, VersionRecord};

use super::{records, requests};
use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Caller, WorkflowsRead, WorkflowsWrite};
use crate::http::query::Params;

pub(super) async fn create(
    caller: Caller<WorkflowsWrite>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let workflow = caller.workflow(&name).await?;
    let body = body::read(&request, payload, body::VERSION_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::create_version(&body))?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let problems = problems(&wanted.graph);
    if !problems.is_empty() {
        return Err(ApiError::problems(ErrorCode::GraphInvalid, problems));
    }
    let new = frozen(&caller, workflow.id, wanted)?;
    let (version, created) = caller.store().save_version(new).await?;
    caller.app().chat().forget(workflow.id);
    let mut answer = if created { HttpResponse::Created() } else { HttpResponse::Ok() };
    Ok(answer.json(records::version(version)))
}

fn frozen(
    caller: &Caller<WorkflowsWrite>,
    workflow_id: uuid::Uuid,
    wanted: CreateVersion,
) -> ApiResult<NewVersion> {
    let no_form = |error: engine::CanonicalError| {
        let problem = FieldError::new("/graph", "canonical", error.to_string());
        ApiError::problems(ErrorCode::GraphInvalid, vec![problem])
    };
    let digest = engine::digest(&wanted.graph).map_err(no_form)?;
    let identity = engine::identity(&wanted.graph, wanted.runnable_config.as_ref()).map_err(no_form)?;
    Ok(NewVersion {
        workflow_id,
        digest: digest.to_vec(),
        identity: identity.to_vec(),
        graph: wanted.graph,
        runnable_config: wanted.runnable_config,
        metadata: wanted.metadata.unwrap_or_default(),
        notes: wanted.notes,
        created_by: caller.name().map(str::to_owned),
    })
}

pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<VersionRecord>> {
    let (name, number) = path.into_inner();
    let workflow = caller.workflow(&name).await?;
    let not_found = || ApiError::new(ErrorCode::VersionNotFound);
    let number: i32 = number.parse().map_err(|_| not_found())?;
    let version = caller.store().version(workflow.id, number).await?.ok_or_else(not_found)?;
    ApiError::refuse(Params::of(&request).finish())?;
    Ok(Json(records::version(version)))
}

/// Says everything that is wrong with a graph, without saving it.
pub(super) async fn check(
    caller: Caller<WorkflowsRead>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<Json<Value>> {
    let body = body::read(&request, payload, body::VERSION_LIMIT, &**caller.app().clock()).await?;
    let body = body::object(&request, &body)?;
    let wanted = Params::of(&request).and(requests::check(&body))?;
    let errors = problems(&wanted.graph);
    Ok(Json(json!({"valid": errors.is_empty(), "errors": errors, "warnings": []})))
}

/// Pointers begin at the graph.
fn problems(graph: &Value) -> Vec<FieldError> {
    engine::check(graph).err().unwrap_or_default()
}
