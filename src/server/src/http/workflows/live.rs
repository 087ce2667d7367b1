//! Sets the live version, which chats, triggers and sub-workflows use.

use actix_web::HttpResponse;
use actix_web::web::Path;
use control::workflows;
use wire::ErrorCode;

use super::{records, requests, versions};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::WorkflowsWrite;
use crate::http::idempotency::ChangeReply;

/// Makes a numbered version live; an older one is a rollback. Responds with 200 and the workflow's record.
pub(super) async fn set(
    change: Change<WorkflowsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (name, number) = &*path;
    let workflow = caller.workflow(name).await?;
    caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    let force = change.wanted_if_any(requests::set_live)?.force.unwrap_or_default();
    let version = versions::find(caller, &workflow, number).await?;
    let number = version.number.ok_or_else(|| {
        ApiError::new(ErrorCode::VersionNotFound)
            .with_message("A draft cannot be live; save it as a version first, with {\"draft\": id}.")
    })?;
    let base = change.public_base();
    change
        .make(async |changes| {
            let live = workflows::set_live(changes, caller.requester(), &workflow, number, force).await?;
            ChangeReply::ok(&records::workflow(live, &base))
        })
        .await
}
