//! Trainings, evaluations and checkpoints: start, control, read, watch.

mod checkpoints;
mod control;
mod list;
mod report;
mod requests;
mod rescore;
mod start;

pub(super) use control::{Control, control};
pub(super) use requests::{TrainingRequest, read as read_request};
pub(super) use start::{refused as refused_training, start as start_training};

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use store::StoredRun;
use uuid::Uuid;
use wire::operations::trainings as operations;
use wire::{ErrorCode, TrainingKind, TrainingRecord};

use super::error::{ApiError, ApiResult};
use super::events::{self, RunView};
use super::guard::{Caller, RouteScope, Watcher, WorkflowsRead};
use super::query;
use super::routes::Routes;
use super::thread_ids::ThreadIds;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::START, start::create)
        .on(&operations::LIST, list::list)
        .on(&operations::READ, show)
        .on(&operations::EVENTS, watch)
        .on(&operations::CANDIDATES, list::candidates)
        .on(&operations::CASES, list::cases)
        .on(&operations::REPORT, report::show)
        .on(&operations::CURVE, report::curve)
        .on(&operations::RESCORE, rescore::rescore)
        .on(&operations::PAUSE, control::pause)
        .on(&operations::RESUME, control::resume)
        .on(&operations::CANCEL, control::cancel)
        .on(&operations::CHECKPOINTS, checkpoints::list)
        .on(&operations::CHECKPOINT, checkpoints::show)
        .register(config);
}

async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<TrainingRecord>> {
    let run = found(&caller, &path).await?;
    query::none(&request)?;
    Ok(Json(record(&caller, run.id).await?))
}

/// Streams the run's events, from any event on.
async fn watch(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let run = found(&caller, &path).await?;
    let app = caller.app().clone();
    let stream = app.chat().stream(run.id).await?.ok_or_else(|| ApiError::new(ErrorCode::StreamNotFound))?;
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    let shut_out = Watcher::for_request(caller, &request).shut_out(run.workspace_id);
    let view = RunView { ids, named: stream.id, until: Box::pin(shut_out) };
    events::serve_run(&app, &stream, &request, view).await
}

/// Returns the record of an existing run.
async fn record<S>(caller: &Caller<S>, run: Uuid) -> ApiResult<TrainingRecord> {
    let found = caller.app().trainings().record(run).await?;
    found.ok_or_else(|| ApiError::new(ErrorCode::RunNotFound))
}

/// Finds the training or evaluation that a path names, which must belong to the named workflow.
async fn found<S: RouteScope>(caller: &Caller<S>, path: &Path<(String, String)>) -> ApiResult<StoredRun> {
    let (workflow, id) = &**path;
    let workflow = caller.workflow(workflow).await?;
    let not_found = || ApiError::new(ErrorCode::RunNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let run = caller.app().runs().run(id).await?.map(|(run, _)| run);
    let is_training =
        |run: &StoredRun| run.workflow_id == workflow.id && TrainingKind::from_name(&run.trigger).is_some();
    run.filter(is_training).ok_or_else(not_found)
}
