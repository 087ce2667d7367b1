//! Workflow runs: start, list, read, watch, trace, stop.

mod create;
mod inputs;
mod list;
mod records;
mod requests;
mod rerun;
mod trace;

pub(super) use create::{check_config, new_run, new_run_of};

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use store::{RunFilter, RunState, StoredRun};
use uuid::Uuid;
use wire::operations::runs as operations;
use wire::{ErrorCode, Listed, RunRecord};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::events::RunView;
use super::guard::{Caller, RouteScope, Watcher, WorkflowsExecute, WorkflowsRead};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::query::{self, Params};
use super::routes::Routes;
use super::thread_ids::ThreadIds;
use super::{events, time};

/// The list's name in cursors.
const LIST: &str = "runs";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST_OF_WORKFLOW, of_workflow)
        .on(&operations::START_RUN, create::create)
        .on(&operations::LIST, list::list)
        .on(&operations::READ, show)
        .on(&operations::EVENTS, watch)
        .on(&operations::TRACE, trace::trace)
        .on(&operations::CANCEL, cancel)
        .on(&operations::RERUN, rerun::rerun)
        .on(&operations::ANSWER, inputs::answer)
        .register(config);
}

/// Lists the newest first.
async fn of_workflow(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<RunRecord>>> {
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<Uuid> = PageQuery::from_params(&mut query, LIST);
    let status = query.text("status");
    let wanted = status.as_deref().and_then(RunState::from_name);
    if status.is_some() && wanted.is_none() {
        let names = RunState::ALL.map(RunState::as_str).join(", ");
        query.note("status", "choice", format!("must be one of {names}"));
    }
    ApiError::refuse(query.finish())?;
    let filter = RunFilter { status: wanted, before: part.after };
    let mut found = caller.app().runs().of_workflow(workflow.id, filter, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |(run, _)| run.id);
    let data = found.into_iter().map(|(run, version)| records::run(run, version, Vec::new())).collect();
    let ids = ThreadIds::for_caller(&caller, workflow.workspace_id);
    ids.record(Listed { data, next_cursor }).map(Json)
}

async fn show(
    caller: Caller<WorkflowsRead>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<RunRecord>> {
    let (run, version) = found(&caller, &id).await?;
    query::none(&request)?;
    Ok(Json(record(&caller, run, version).await?))
}

/// The record of a run, with its open questions and its continuation.
async fn record<S>(caller: &Caller<S>, run: StoredRun, version: Option<i32>) -> ApiResult<RunRecord> {
    let questions = caller.app().runs().questions(run.id).await?;
    let continued_by = caller.store().continued_by(run.id).await?.map(|run| run.to_string());
    let resumes_at = caller.store().resumes_at(run.id).await?.filter(|_| run.status == RunState::Waiting);
    let ids = ThreadIds::for_caller(caller, run.workspace_id);
    let record = records::run(run, version, questions);
    ids.record(RunRecord { resumes_at: resumes_at.map(time), continued_by, ..record })
}

/// Streams the run's events, from any event on.
async fn watch(
    caller: Caller<WorkflowsRead>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (run, _) = found(&caller, &id).await?;
    let app = caller.app().clone();
    let stream = match run.stream_id {
        Some(stream) => app.chat().stream(stream).await?,
        None => None,
    };
    let stream = stream.ok_or_else(|| ApiError::new(ErrorCode::StreamNotFound))?;
    let ids = ThreadIds::for_caller(&caller, run.workspace_id);
    // The id of a chat stream grants access, like that of its thread.
    let named = match ids {
        ThreadIds::Hidden if stream.thread_id.is_some() => run.id,
        ThreadIds::Hidden | ThreadIds::Shown => stream.id,
    };
    let shut_out = Watcher::for_request(caller, &request).shut_out(run.workspace_id);
    let view = RunView { ids, named, until: Box::pin(shut_out) };
    events::serve_run(&app, &stream, &request, view).await
}

/// Stops the run. Idempotent. The idempotency key is checked only after stopping, so that a retry during the first
/// request waits for the run's end as well.
async fn cancel(change: Change<WorkflowsExecute>, id: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (run, _) = found(caller, &id).await?;
    change.wants_no_more()?;
    caller.app().runs().stop(run.id).await?;
    let (run, version) = found(caller, &id).await?;
    let record = record(caller, run, version).await?;
    change.make(async |_| ChangeReply::ok(&record)).await
}

/// Finds the run that a path names, if the caller can access its workspace.
pub(super) async fn found<S: RouteScope>(
    caller: &Caller<S>,
    id: &str,
) -> ApiResult<(StoredRun, Option<i32>)> {
    let not_found = || ApiError::new(ErrorCode::RunNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    let found = caller.app().runs().run(id).await?.ok_or_else(not_found)?;
    caller.enter_workspace_of(found.0.workspace_id).await?;
    Ok(found)
}
