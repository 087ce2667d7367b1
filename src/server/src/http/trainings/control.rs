//! Pauses, resumes and cancels runs.

use actix_web::HttpResponse;
use actix_web::web::Path;
use actors::kinds::training::Trainings;
use store::StoredRun;
use wire::ErrorCode;

use super::{found, record};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::WorkflowsExecute;
use crate::http::idempotency::ChangeReply;

/// A control request for a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::http) enum Control {
    Pause,
    Resume,
    Cancel,
}

pub(super) async fn pause(
    change: Change<WorkflowsExecute>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    answer(change, path, Control::Pause).await
}

pub(super) async fn resume(
    change: Change<WorkflowsExecute>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    answer(change, path, Control::Resume).await
}

pub(super) async fn cancel(
    change: Change<WorkflowsExecute>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    answer(change, path, Control::Cancel).await
}

/// Responds to a control request. Idempotent.
async fn answer(
    change: Change<WorkflowsExecute>,
    path: Path<(String, String)>,
    wanted: Control,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let run = found(caller, &path).await?;
    change.wants_no_more()?;
    control(&caller.app().trainings(), &run, wanted).await?;
    let record = record(caller, run.id).await?;
    change.make(async |_| ChangeReply::ok(&record)).await
}

/// Applies the control and waits briefly for its effect.
pub(in crate::http) async fn control(
    trainings: &Trainings,
    run: &StoredRun,
    wanted: Control,
) -> ApiResult<()> {
    if run.status.is_terminal() {
        return Err(ApiError::new(ErrorCode::RunNotActive));
    }
    match wanted {
        Control::Pause => trainings.pause(run.id).await?,
        Control::Resume => trainings.resume(run.id).await?,
        Control::Cancel => trainings.cancel(run.id).await?,
    }
    Ok(())
}
