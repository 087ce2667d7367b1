//! Rollout of versions: the gate and the canary.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::training::FixedGate;
use control::{rollouts, workflows};
use store::{StoredCanary, StoredRollout, StoredWorkflow, VersionOfCanary};
use wire::{CanaryCounts, ErrorCode, FieldError, Rollout, RolloutGate, RunningCanary};

use super::rollout_request;
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Caller, WorkflowsRead, WorkflowsWrite};
use crate::http::idempotency::ChangeReply;
use crate::http::trainings::refused_training;
use crate::http::{query, time};

/// Returns the gate, the canary and the canary's counts.
pub(super) async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Rollout>> {
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let stored = caller.store().rollout(workflow.id).await?;
    let canary = stored.as_ref().and_then(|stored| stored.canary);
    let counts = counts(&caller, &workflow, canary).await?;
    Ok(Json(record(stored, workflow.live_version, counts)))
}

/// Sets gate and canary. Responds with 200 and the rollout.
pub(super) async fn set(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    let mut wanted = change.wanted(rollout_request::read)?;
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowArchived));
    }
    if let Some(canary) = &wanted.canary
        && caller.store().version(workflow.id, canary.version).await?.is_none()
    {
        let message = format!("this workflow has no version {}", canary.version);
        let problem = FieldError::new("/canary/version", "version_not_found", message);
        return Err(ApiError::problems(ErrorCode::InvalidRequest, vec![problem]));
    }
    let mut evaluation = None;
    if let Some(gate) = wanted.gate.take() {
        let fixed = check(caller, &workflow, gate).await?;
        wanted.gate = Some(fixed.gate);
        evaluation = Some(fixed.evaluation);
    }
    // An unchanged canary keeps its counts.
    let known = caller.store().rollout(workflow.id).await?.and_then(|known| known.canary);
    let stays = known.filter(|known| wanted.canary.is_some_and(|canary| canary.version == known.version));
    let counts = counts(caller, &workflow, stays).await?.unwrap_or_default();
    change
        .make(async |changes| {
            let stored = rollouts::set(changes, caller.requester(), &workflow, wanted, evaluation).await?;
            let live = changes.live_version(workflow.id).await?;
            let counts = stored.canary.map(|_| counts);
            ChangeReply::ok(&record(Some(stored), live, counts))
        })
        .await
}

/// Makes the canary live. Responds with 200 and the rollout.
pub(super) async fn promote(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    change.wants_no_more()?;
    change
        .make(async |changes| {
            let stored = rollouts::promote(changes, caller.requester(), &workflow).await?;
            let live = changes.live_version(workflow.id).await?;
            ChangeReply::ok(&record(Some(stored), live, None))
        })
        .await
}

/// Returns the gate with fixed versions, or all its problems. They are found by preparing an evaluation of the live
/// version, or else the latest one, without starting it.
async fn check(
    caller: &Caller<WorkflowsWrite>,
    workflow: &StoredWorkflow,
    gate: RolloutGate,
) -> ApiResult<FixedGate> {
    let app = caller.app();
    let version = match workflow.live_version.or(workflow.latest_version) {
        Some(number) => app.runs().version(workflow.workspace_id, workflow.id, Some(number)).await?,
        None => None,
    };
    let checked = app.trainings().check_gate(workflow.workspace_id, workflow.id, version, gate).await;
    checked.map_err(refused_training)
}

async fn counts<S>(
    caller: &Caller<S>,
    workflow: &StoredWorkflow,
    canary: Option<StoredCanary>,
) -> ApiResult<Option<CanaryCounts>> {
    let Some(canary) = canary else { return Ok(None) };
    let live = workflow.live_version.unwrap_or_default();
    let of = VersionOfCanary { workflow: workflow.id, canary, live };
    Ok(Some(caller.store().canary_counts(of).await?))
}

fn record(stored: Option<StoredRollout>, live_version: Option<i32>, counts: Option<CanaryCounts>) -> Rollout {
    let (gate, canary, last_canary) = match stored {
        Some(stored) => (stored.gate, stored.canary, stored.last_canary),
        None => (None, None, None),
    };
    let canary = canary.map(|canary| RunningCanary {
        version: canary.version,
        percent: canary.percent,
        promote_after_turns: canary.promote_after_turns,
        started_at: time(canary.since),
    });
    Rollout { live_version, gate, canary, counts, last_canary }
}
