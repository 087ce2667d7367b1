//! Beginning a run.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::plans::LoadedVersion;
use actors::runs::{IdempotencyKey, NewRun, RunOptions};
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use store::StoredWorkflow;
use wire::{CreateRun, ErrorCode, FieldError};

use super::{records, requests};
use crate::http::error::{ApiError, ApiResult};
use crate::http::extract::{Caller, WorkflowsExecute};
use crate::http::idempotency::REPLAYED;
use crate::http::query::Params;
use crate::http::workflows::no_version;
use crate::http::{body, idempotency};

/// Seconds that a caller may wait for the run's end.
const LONGEST_WAIT: i64 = 60;

/// 202 at once, or the result within `?wait=` seconds.
pub(super) async fn create(
    caller: Caller<WorkflowsExecute>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let workflow = caller.workflow(&name).await?;
    let key = idempotency::key(&request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let members = body::object_or_nothing(&request, &bytes)?;
    let mut query = Params::of(&request);
    let wait = query.whole("wait", 0..=LONGEST_WAIT).and_then(|seconds| u64::try_from(seconds).ok());
    let wanted = query.and(requests::create_run(&members))?;
    let key = key.map(|key| IdempotencyKey {
        scope: format!("runs|{}", workflow.id),
        also: None,
        key,
        digest: digest(&SHA256, &bytes).as_ref().to_vec(),
    });
    let new = new_run(&caller, &workflow, wanted, key).await?;
    let runs = caller.app().runs();
    let begun = runs.begin(new).await?;
    if let Some(wait) = wait.filter(|wait| *wait > 0) {
        runs.wait(begun.run, Duration::from_secs(wait)).await?;
    }
    let (run, version) = runs
        .run(begun.run)
        .await?
        .ok_or_else(|| ApiError::new(ErrorCode::Internal).with_cause("a run that was begun is not there"))?;
    let ended = run.status.is_terminal();
    let record = match wait {
        // The same answer to a retry, whatever has become of the run meanwhile.
        None => records::as_begun(run, version),
        Some(_) => records::run(run, version),
    };
    let mut answer = if wait.is_some() && ended { HttpResponse::Ok() } else { HttpResponse::Accepted() };
    if begun.replayed {
        answer.insert_header(REPLAYED);
    }
    Ok(answer.json(record))
}

async fn new_run(
    caller: &Caller<WorkflowsExecute>,
    workflow: &StoredWorkflow,
    wanted: CreateRun,
    idempotency: Option<IdempotencyKey>,
) -> ApiResult<NewRun> {
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let version = version(caller, workflow, wanted.version).await?;
    let inputs = wanted.inputs.unwrap_or_else(|| Value::Object(Map::new()));
    let problems = version.plan.check_inputs(&inputs);
    if !problems.is_empty() {
        let inside =
            |problem: FieldError| FieldError { pointer: format!("/inputs{}", problem.pointer), ..problem };
        let problems = problems.into_iter().map(inside).collect();
        return Err(ApiError::problems(ErrorCode::RunInputsInvalid, problems));
    }
    Ok(NewRun {
        workspace: workflow.workspace_id,
        version,
        inputs,
        options: RunOptions {
            config: wanted.config.unwrap_or_default(),
            timeout_seconds: wanted.timeout_seconds,
            metadata: wanted.metadata.unwrap_or_default(),
        },
        trigger: "api",
        idempotency,
    })
}

async fn version(
    caller: &Caller<WorkflowsExecute>,
    workflow: &StoredWorkflow,
    number: Option<i32>,
) -> ApiResult<Arc<LoadedVersion>> {
    let none = || match number {
        Some(number) => no_version(workflow, &number.to_string()),
        None => ApiError::new(ErrorCode::WorkflowNoVersion),
    };
    let Some(number) = number.or(workflow.latest_version) else { return Err(none()) };
    let found = caller.app().runs().version(workflow.workspace_id, workflow.id, Some(number)).await?;
    found.ok_or_else(none)
}
