//! Lists and shows a workflow's checkpoints.

use actix_web::HttpRequest;
use actix_web::web::{Json, Path};
use actors::kinds::training::checkpoint_record;
use uuid::Uuid;
use wire::{CheckpointRecord, ErrorCode};

use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead};
use crate::http::query::{self, Params};
use crate::http::thread_ids::ThreadIds;

/// Default number of checkpoints listed.
const DEFAULT: i64 = 20;

/// Lists the newest first.
pub(super) async fn list(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Vec<CheckpointRecord>>> {
    let workflow = caller.workflow(&name).await?;
    let mut query = Params::from_request(&request);
    let limit = query.whole("limit", 1..=200).unwrap_or(DEFAULT);
    let only_best = query.flag("best");
    ApiError::refuse(query.finish())?;
    let found = caller.store().checkpoints(workflow.id, only_best, limit).await?;
    let records: Vec<CheckpointRecord> = found.into_iter().map(checkpoint_record).collect();
    ThreadIds::for_caller(&caller, workflow.workspace_id).record(records).map(Json)
}

pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<CheckpointRecord>> {
    let (name, id) = path.into_inner();
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let not_found = || ApiError::new(ErrorCode::CheckpointNotFound);
    let id = Uuid::parse_str(&id).map_err(|_| not_found())?;
    let found = caller.store().checkpoint(id).await?.filter(|found| found.workflow_id == workflow.id);
    let record = found.map(checkpoint_record).ok_or_else(not_found)?;
    ThreadIds::for_caller(&caller, workflow.workspace_id).record(record).map(Json)
}
