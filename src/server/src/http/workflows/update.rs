//! Updates a workflow's own fields.

use actix_web::HttpResponse;
use actix_web::web::Path;
use store::WorkflowChange;
use wire::UpdateWorkflow;

use super::{records, requests, told_of_handle};
use crate::http::change::Change;
use crate::http::error::ApiResult;
use crate::http::guard::WorkflowsWrite;
use crate::http::idempotency::ChangeReply;

/// Changes only the fields in the body.
pub(super) async fn update(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    let wanted = change.wanted(requests::update_workflow)?;
    let handle = wanted.handle.clone();
    let base = change.public_base();
    let answer = change
        .make(async |changes| {
            let workflow = changes.change_workflow(workflow.id, changed(wanted)).await?;
            ChangeReply::ok(&records::workflow(workflow, &base))
        })
        .await;
    told_of_handle(caller, answer, workflow.workspace_id, handle).await
}

fn changed(wanted: UpdateWorkflow) -> WorkflowChange {
    WorkflowChange {
        name: wanted.name,
        handle: wanted.handle,
        description: wanted.description,
        tags: wanted.tags,
        chat: wanted.chat.unwrap_or_default(),
        max_concurrent_runs: wanted.max_concurrent_runs,
    }
}
