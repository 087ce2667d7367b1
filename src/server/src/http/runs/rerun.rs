//! Repeats a run.

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::workflow::{Repeat, RepeatError};
use serde_json::{Map, Value};
use store::WorkflowRef;
use wire::{ErrorCode, FieldError, Rerun, RerunVersion};

use super::{create, found};
use crate::http::body;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::{Caller, WorkflowsExecute};
use crate::http::query::Params;

/// Responds with 202 and the new run, which names the original.
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
    let wanted = Params::from_request(&request).and(read(&body::object_or_nothing(&request, &bytes)?))?;
    let workflow = caller.store().workflow(&WorkflowRef::Id(run.workflow_id), run.workspace_id).await?;
    let workflow = workflow.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
    let number = wanted.version.map(|version| match version {
        RerunVersion::Number(number) => Some(number),
        RerunVersion::Live(_) => None,
    });
    let version = match number {
        Some(number) => Some(create::version(caller.app(), &workflow, number).await?),
        None => None,
    };
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let limited = workflow.max_concurrent_runs.is_some();
    let Rerun { from_step, patch, inputs, .. } = wanted;
    let begun = runs.repeat(run, Repeat { from_step, patch, inputs, version }, limited, key).await;
    create::answer(&caller, begun.map_err(refused)?, None).await
}

fn refused(error: RepeatError) -> ApiError {
    match error {
        RepeatError::Never => ApiError::new(ErrorCode::RunNotRepeatable),
        RepeatError::Invalid(problems) => ApiError::problems(ErrorCode::InvalidRequest, problems),
        RepeatError::Inputs(problems) => create::invalid_inputs(problems),
        RepeatError::Start(error) => error.into(),
        RepeatError::Plan(error) => error.into(),
    }
}

fn read(body: &Map<String, Value>) -> Result<Rerun, Vec<FieldError>> {
    let mut fields = Fields::new(body);
    let from_step = fields.whole("from_step", 1..=i64::from(u32::MAX));
    let patch = fields.object("patch").cloned().unwrap_or_default();
    let inputs = fields.object("inputs").cloned().map(Value::Object);
    let given = fields.stands("version").filter(|version| !version.is_null());
    let version: Option<RerunVersion> =
        given.and_then(|version| serde_json::from_value(version.clone()).ok());
    let version = version.filter(|version| !matches!(version, RerunVersion::Number(..=0)));
    if given.is_some() && version.is_none() {
        fields.note(FieldError::new("/version", "range", "must be a whole number from 1, or \"live\""));
    }
    let problems = fields.finish();
    let from_step = from_step.and_then(|step| u32::try_from(step).ok());
    if problems.is_empty() { Ok(Rerun { from_step, patch, inputs, version }) } else { Err(problems) }
}
