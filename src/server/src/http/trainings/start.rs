//! Starts trainings and evaluations.

use std::sync::Arc;

use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::{Prepared, Refused, StartedTraining, TrainingKey, Wanted, names_credential};
use actors::kinds::workflow::IdempotencyKey;
use actors::plans::LoadedVersion;
use chrono::TimeDelta;
use store::{StoredRun, StoredWorkflow, WorkflowRef};
use uuid::Uuid;
use wire::{CallUsage, ErrorCode, FieldError, TrainingKind, TrainingProgress, TrainingRecord, TrainingState};

use super::record;
use super::requests::{self, TrainingRequest};
use crate::http::body::{self, CASES_LIMIT};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, RouteScope, WorkflowsExecute};
use crate::http::idempotency::{self, KeyScopes, REPLAYED};
use crate::http::query::Params;
use crate::http::workflows::draft_of_graph;

/// Maximum clock skew of clients that choose run ids, backwards and forwards.
const MAX_AGE: TimeDelta = TimeDelta::days(1);
const MAX_AHEAD: TimeDelta = TimeDelta::seconds(60);

/// Responds with 202 and the record, or with a dry run's plan.
pub(super) async fn create(
    caller: Caller<WorkflowsExecute>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let bytes = body::read(&request, payload, CASES_LIMIT, &**caller.app().clock()).await?;
    let key = idempotency::key(&request)?;
    let workflow = caller.workflow(&name).await?;
    let mut members = body::large_object(&request, bytes).await?;
    let mut query = Params::from_request(&request);
    let is_dry = query.flag("dry_run");
    let wanted = query.and(requests::read(&mut members, None, &[]))?;
    if is_dry {
        let prepared = prepare(&caller, &workflow, wanted).await?;
        return Ok(HttpResponse::Ok().json(prepared.plan()));
    }
    let key = key.map(|key| (KeyScopes::for_request(&caller, &request), key));
    let started = start(&caller, &workflow, wanted, key).await?;
    accepted(&caller, &started).await
}

/// Responds with 202 and the record.
pub(super) async fn accepted<S>(caller: &Caller<S>, started: &StartedTraining) -> ApiResult<HttpResponse> {
    let record = record(caller, started.run).await?;
    let mut answer = HttpResponse::Accepted();
    if started.replayed {
        answer.insert_header(REPLAYED);
    }
    Ok(answer.json(as_started(record)))
}

/// The record as of acceptance, so that every retry gets the same response.
fn as_started(record: TrainingRecord) -> TrainingRecord {
    TrainingRecord {
        status: TrainingState::Queued,
        started_at: None,
        finished_at: None,
        stop_reason: None,
        outcome: None,
        error: None,
        best_score: None,
        best_checkpoint: None,
        progress: TrainingProgress::default(),
        usage: CallUsage::default(),
        ..record
    }
}

/// Starts a run, or finds the one started by an earlier request with the same key or id. `key` contains the scopes and
/// value of an `Idempotency-Key`.
pub(in crate::http) async fn start<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    wanted: TrainingRequest,
    key: Option<(KeyScopes, String)>,
) -> ApiResult<StartedTraining> {
    let trainings = caller.app().trainings();
    if key.is_some() && wanted.run.is_some() {
        let problem = FieldError::new("/run_id", "conflict", "cannot be combined with an Idempotency-Key");
        return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
    }
    let digest = wanted.digest();
    let key = key.map(|(KeyScopes { first: scope, also }, key)| IdempotencyKey {
        scope,
        also,
        key,
        digest: digest.clone(),
    });
    let key = TrainingKey { key, run: wanted.run, digest };
    if let Some(started) = trainings.started(&key).await? {
        return of_workflow(caller, workflow, started).await;
    }
    if let Some(run) = key.run {
        check_id(run, caller.app().clock().now())?;
    }
    let prepared = prepare(caller, workflow, wanted).await?;
    let started = trainings.start(prepared, key).await?;
    of_workflow(caller, workflow, started).await
}

/// Checks that a run starting now can have this id, whose timestamp records the time of acceptance.
fn check_id(run: Uuid, now: chrono::DateTime<chrono::Utc>) -> ApiResult<()> {
    let is_of_now = kernel::time_of(run).is_some_and(|time| time > now - MAX_AGE && time < now + MAX_AHEAD);
    if is_of_now {
        return Ok(());
    }
    let problem = FieldError::new("/run_id", "range", "must be a UUIDv7 of the last day");
    Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]))
}

/// Refuses an id that already belongs to another workflow's run or another kind.
async fn of_workflow<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    started: StartedTraining,
) -> ApiResult<StartedTraining> {
    let run = caller.app().runs().run(started.run).await?;
    let is_own = |(run, _): &(StoredRun, _)| {
        run.workflow_id == workflow.id && TrainingKind::from_name(&run.trigger).is_some()
    };
    if run.as_ref().is_some_and(is_own) {
        return Ok(started);
    }
    Err(ApiError::new(ErrorCode::IdempotencyKeyReused))
}

/// Validates the request and resolves everything that the run needs.
async fn prepare<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    wanted: TrainingRequest,
) -> ApiResult<Prepared> {
    let TrainingRequest { kind, graph, inputs, config, asked, .. } = wanted;
    let has_graph = graph.is_some();
    // Each of these can decide where workspace secrets are sent.
    if has_graph || !config.is_empty() || names_credential(&asked) {
        caller.check_writes_workflows(workflow.workspace_id).await?;
    }
    let version = version(caller, workflow, graph).await?;
    let wanted =
        Wanted { workspace: workflow.workspace_id, version, has_graph, kind, request: asked, inputs, config };
    caller.app().trainings().prepare(wanted).await.map_err(refused)
}

pub(in crate::http) fn refused(refused: Refused) -> ApiError {
    match refused {
        Refused::Invalid(problems) => ApiError::problems(ErrorCode::InvalidRequest, problems),
        Refused::Store(error) => error.into(),
        Refused::Code(error) => ApiError::new(ErrorCode::CodeUnavailable).with_cause(error),
    }
}

/// Loads the requested graph as a version, or else the live version.
async fn version<S: RouteScope>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    graph: Option<serde_json::Value>,
) -> ApiResult<Arc<LoadedVersion>> {
    let app = caller.app();
    // Reloaded, because a socket may be open for days.
    let found = app.store().workflow(&WorkflowRef::Id(workflow.id), workflow.workspace_id).await?;
    let workflow = found.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    if let Some(graph) = graph {
        let new = draft_of_graph(caller, &workflow, graph).await?;
        let draft = app.store().change(async |changes| changes.save_draft(new).await).await?;
        return Ok(app.runs().version_by_id(draft.id).await?);
    }
    let found = app.runs().version(workflow.workspace_id, workflow.id, None).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNoVersion))
}
