//! A run once more, from one of its steps on.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::workflow::RepeatError;
use serde_json::{Map, Value};
use store::WorkflowRef;
use wire::{ErrorCode, FieldError, Rerun};

use super::{create, found};
use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::{Caller, WorkflowsExecute};
use crate::http::query::Params;

/// 202 with the new run, which names the old one.
pub(super) async fn rerun(
    caller: Caller<WorkflowsExecute>,
    id: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let key = create::key(&caller, &request, &bytes)?;
    let runs = caller.app().runs();
    if let Some(key) = &key
        && let Some(begun) = runs.started(key).await?
    {
        return create::answer(&caller, begun, None).await;
    }
    let (run, _) = found(&caller, &id).await?;
    let wanted = Params::of(&request).and(read(&body::object(&request, &bytes)?))?;
    let workflow = caller.store().workflow(&WorkflowRef::Id(run.workflow_id), run.workspace_id).await?;
    let workflow = workflow.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let limited = workflow.max_concurrent_runs.is_some();
    let begun = runs.repeat(run, wanted.from_step, wanted.patch, limited, key).await;
    create::answer(&caller, begun.map_err(refused)?, None).await
}

fn refused(error: RepeatError) -> ApiError {
    match error {
        RepeatError::Never => ApiError::new(ErrorCode::RunNotRepeatable),
        RepeatError::Invalid(problems) => ApiError::problems(ErrorCode::InvalidRequest, problems),
        RepeatError::Start(error) => error.into(),
        RepeatError::Plan(error) => error.into(),
    }
}

fn read(body: &Map<String, Value>) -> Result<Rerun, Vec<FieldError>> {
    let mut fields = Fields::of(body);
    fields.require("from_step");
    let from_step = fields.whole("from_step", 1..=i64::from(u32::MAX));
    let patch = fields.object("patch").cloned().unwrap_or_default();
    let problems = fields.finish();
    let from_step = from_step.and_then(|step| u32::try_from(step).ok()).unwrap_or_default();
    if problems.is_empty() { Ok(Rerun { from_step, patch }) } else { Err(problems) }
}
