//! Starts runs.

use std::sync::Arc;
use std::time::Duration;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::workflow::{IdempotencyKey, NewRun, RunOptions, StartedRun};
use actors::plans::LoadedVersion;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value};
use store::{RunState, StoredWorkflow};
use wire::{CreateRun, ErrorCode, FieldError};

use super::{records, requests};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, RouteScope, WorkflowsExecute};
use crate::http::idempotency::{KeyScopes, REPLAYED};
use crate::http::query::Params;
use crate::http::thread_ids::ThreadIds;
use crate::http::workflows::no_version;
use crate::http::{App, body, idempotency};

/// Maximum seconds that a caller may wait for the run's end.
const LONGEST_WAIT: i64 = 60;

/// The state before starting a run.
enum Start {
    /// An earlier request with the same key has started the run.
    Before(StartedRun),
    /// The workflow to run.
    Now(Box<StoredWorkflow>),
}

/// Responds with 202 at once, or with the result within `?wait=` seconds.
pub(super) async fn create(
    caller: Caller<WorkflowsExecute>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let key = key(&caller, &request, &bytes)?;
    let runs = caller.app().runs();
    let begun = match &key {
        Some(key) => runs.started(key).await?,
        None => None,
    };
    let asked = match begun {
        Some(begun) => Start::Before(begun),
        None => Start::Now(Box::new(caller.workflow(&name).await?)),
    };
    let (wanted, wait) = read(&request, &bytes)?;
    let begun = match asked {
        Start::Before(begun) => begun,
        Start::Now(workflow) => {
            check_config(&caller, &workflow, &wanted).await?;
            let new = new_run(caller.app(), &workflow, wanted, "api", key).await?;
            runs.start(new).await?
        }
    };
    answer(&caller, begun, wait).await
}

/// Refuses a config from a caller who may not change workflows, because a config, like a graph, can decide where
/// secrets are sent.
pub(in crate::http) async fn check_config<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    wanted: &CreateRun,
) -> ApiResult<()> {
    match wanted.config.as_ref().is_some_and(|config| !config.is_empty()) {
        true => caller.check_writes_workflows(workflow.workspace_id).await,
        false => Ok(()),
    }
}

/// The request's `Idempotency-Key`, if any.
pub(super) fn key(
    caller: &Caller<WorkflowsExecute>,
    request: &HttpRequest,
    body: &[u8],
) -> ApiResult<Option<IdempotencyKey>> {
    Ok(idempotency::key(request)?.map(|key| {
        let KeyScopes { first: scope, also } = KeyScopes::for_request(caller, request);
        IdempotencyKey { scope, also, key, digest: digest(&SHA256, body).as_ref().to_vec() }
    }))
}

/// Reads the run request and the seconds to wait for its end.
fn read(request: &HttpRequest, bytes: &[u8]) -> ApiResult<(CreateRun, Option<u64>)> {
    let members = body::object_or_nothing(request, bytes)?;
    let mut query = Params::from_request(request);
    let wait = query.whole("wait", 0..=LONGEST_WAIT).and_then(|seconds| u64::try_from(seconds).ok());
    Ok((query.and(requests::create_run(&members))?, wait))
}

pub(super) async fn answer(
    caller: &Caller<WorkflowsExecute>,
    begun: StartedRun,
    wait: Option<u64>,
) -> ApiResult<HttpResponse> {
    let runs = caller.app().runs();
    if let Some(wait) = wait.filter(|wait| *wait > 0) {
        runs.wait(begun.run, Duration::from_secs(wait)).await?;
    }
    let (run, version) = runs
        .run(begun.run)
        .await?
        .ok_or_else(|| ApiError::new(ErrorCode::Internal).with_cause("a started run was not found"))?;
    // A caller does not wait for a parked run and polls instead.
    let ended = run.status.is_terminal() || run.status == RunState::Waiting;
    let ids = ThreadIds::for_caller(caller, run.workspace_id);
    let record = match wait {
        // A retry gets the same response, whatever the run's state is now.
        None => records::as_begun(run, version),
        Some(_) => {
            let questions = runs.questions(run.id).await?;
            records::run(run, version, questions)
        }
    };
    let mut answer = if wait.is_some() && ended { HttpResponse::Ok() } else { HttpResponse::Accepted() };
    if begun.replayed {
        answer.insert_header(REPLAYED);
    }
    Ok(answer.json(ids.record(record)?))
}

/// Creates the requested run after all checks.
pub(in crate::http) async fn new_run(
    app: &App,
    workflow: &StoredWorkflow,
    wanted: CreateRun,
    trigger: &'static str,
    idempotency: Option<IdempotencyKey>,
) -> ApiResult<NewRun> {
    let version = version(app, workflow, wanted.version).await?;
    new_run_of(workflow, version, wanted, trigger, idempotency)
}

/// Like [`new_run`], for a loaded version or a draft.
pub(in crate::http) fn new_run_of(
    workflow: &StoredWorkflow,
    version: Arc<LoadedVersion>,
    wanted: CreateRun,
    trigger: &'static str,
    idempotency: Option<IdempotencyKey>,
) -> ApiResult<NewRun> {
    let inputs = wanted.inputs.unwrap_or_else(|| Value::Object(Map::new()));
    let problems = version.plan.check_inputs(&inputs);
    if !problems.is_empty() {
        return Err(invalid_inputs(problems));
    }
    Ok(NewRun {
        workspace: workflow.workspace_id,
        version,
        inputs,
        options: RunOptions {
            config: wanted.config.unwrap_or_default(),
            timeout_seconds: wanted.timeout_seconds,
            metadata: wanted.metadata.unwrap_or_default(),
            origin: None,
            app: None,
        },
        trigger,
        limited: workflow.max_concurrent_runs.is_some(),
        idempotency,
    })
}

/// The error for inputs that do not match the version.
pub(super) fn invalid_inputs(problems: Vec<FieldError>) -> ApiError {
    let inside =
        |problem: FieldError| FieldError { pointer: format!("/inputs{}", problem.pointer), ..problem };
    ApiError::problems(ErrorCode::RunInputsInvalid, problems.into_iter().map(inside).collect())
}

/// Returns a workflow's version by number, or the live version.
pub(super) async fn version(
    app: &App,
    workflow: &StoredWorkflow,
    number: Option<i32>,
) -> ApiResult<Arc<LoadedVersion>> {
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    let none = || match number {
        Some(number) => no_version(workflow, &number.to_string()),
        None => ApiError::new(ErrorCode::WorkflowNoVersion),
    };
    // Without a number, returns the live version.
    let found = app.runs().version(workflow.workspace_id, workflow.id, number).await?;
    found.ok_or_else(none)
}
