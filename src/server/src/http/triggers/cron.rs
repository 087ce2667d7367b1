//! A workflow's cron schedule.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use control::triggers;
use store::{CronSettings, StoredCron};
use wire::{CronConfig, CronRecord, ErrorCode};

use super::requests;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead, WorkflowsWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::query;
use crate::http::time;

pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<CronRecord>> {
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let found = caller.store().cron_trigger(workflow.id).await?;
    Ok(Json(record(found.ok_or_else(not_found)?)))
}

/// Replaces the schedule. The next run is in the future.
pub(super) async fn set(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    let now = caller.app().clock().now();
    let (settings, next) = change.wanted(|body| requests::cron(body, now))?;
    change
        .make(async |changes| {
            let stored = triggers::set_cron(changes, caller.requester(), &workflow, &settings, next).await?;
            ChangeReply::ok(&record(stored))
        })
        .await
}

/// Responds with 204. Started runs continue.
pub(super) async fn remove(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    change.wants_no_more()?;
    change.delete(async |changes| triggers::remove_cron(changes, caller.requester(), &workflow).await).await
}

fn not_found() -> ApiError {
    ApiError::new(ErrorCode::TriggerNotFound)
}

fn record(stored: StoredCron) -> CronRecord {
    let CronSettings { expression, timezone, overlap, missed, enabled } = stored.settings;
    CronRecord {
        config: CronConfig { expression, timezone, overlap, missed, enabled },
        next_fire_at: stored.next_fire_at.map(time),
        last_scheduled_for: stored.last_scheduled_for.map(time),
        last_run_id: stored.last_run_id.map(|run| run.to_string()),
        last_skipped: stored.last_skipped,
        last_error: stored.last_error,
        created_at: time(stored.created_at),
        updated_at: time(stored.updated_at),
    }
}
