//! Workflows and their versions.

mod chat_settings;
mod chat_usage;
mod credentials;
mod diagram;
mod diff;
mod feedback;
mod live;
mod names;
mod prices;
mod publish;
mod records;
mod requests;
mod rollout;
mod rollout_request;
mod threads;
mod update;
mod uses;
mod versions;
mod warnings;

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use control::workflows;
use store::WorkflowRef;
use uuid::Uuid;
use wire::operations::{
    chat as chat_operations, rollouts as rollout_operations, visitors as visitor_operations,
    workflows as operations,
};
use wire::{ErrorCode, PublicWorkflow, ShownWorkflow, WorkflowRecord};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{Anyone, Caller, WorkflowsRead, WorkflowsWrite};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::query::{self, Params};
use super::routes::Routes;
pub(super) use feedback::case as feedback_case;
pub(super) use records::public as public_record;
pub(super) use versions::{draft_of_graph, no_version};

/// The list's name in cursors.
const LIST: &str = "workflows";
/// Maximum workflows per page.
const LIST_LIMIT: i64 = 1000;

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, list)
        .on(&operations::CREATE, create)
        .on(&operations::CHECK, versions::check)
        .on(&operations::READ, show)
        .on(&operations::UPDATE, update::update)
        .on(&operations::ARCHIVE, archive)
        .on(&operations::RESTORE, restore)
        .on(&operations::READ_USES, uses::show)
        .on(&operations::READ_PUBLIC, public)
        .on(&operations::LIST_VERSIONS, versions::list)
        .on(&operations::SAVE_VERSION, versions::create)
        .on(&operations::READ_VERSION, versions::show)
        .on(&operations::SET_LIVE, live::set)
        .on(&rollout_operations::READ, rollout::show)
        .on(&rollout_operations::PUT, rollout::set)
        .on(&rollout_operations::PROMOTE, rollout::promote)
        .on(&operations::DIFF, diff::diff)
        .on(&operations::DIAGRAM_SVG, diagram::svg)
        .on(&operations::DIAGRAM_MERMAID, diagram::mermaid)
        .on(&chat_operations::CHAT_USAGE, chat_usage::list)
        .on(&chat_operations::LIST_FEEDBACK, feedback::list)
        .on(&visitor_operations::LIST_WORKFLOW_THREADS, threads::list)
        .on(&visitor_operations::LIST_WORKFLOW_ITEMS, threads::items)
        .on(&visitor_operations::CHANGE_WORKFLOW_THREAD, threads::change)
        .on(&visitor_operations::EXPORT_VISITOR, threads::export_visitor)
        .on(&visitor_operations::ERASE_VISITOR, threads::erase_visitor)
        .on(&operations::PUBLISH, publish::publish)
        .on(&operations::UNPUBLISH, publish::revoke)
        .register(config);
}

/// Lists the newest first as a bare array. If more follow, a header contains the cursor.
async fn list(caller: Caller<WorkflowsRead>, request: HttpRequest) -> ApiResult<HttpResponse> {
    let workspace = caller.workspace().await?;
    let mut query = Params::from_request(&request);
    let with_archived = query.flag("include_archived");
    let part = PageQuery::within(&mut query, LIST, LIST_LIMIT, LIST_LIMIT);
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().workflows(workspace, with_archived, part.after, part.wanted()).await?;
    let next = part.cut(LIST, &mut found, |workflow| workflow.id);
    let base = caller.app().public_base(&request);
    let records: Vec<WorkflowRecord> =
        found.into_iter().map(|workflow| records::workflow(workflow, &base)).collect();
    let mut response = HttpResponse::Ok();
    if let Some(next) = next {
        response.insert_header(("X-Next-Cursor", next));
    }
    Ok(response.json(records))
}

async fn create(change: Change<WorkflowsWrite>) -> ApiResult<HttpResponse> {
    let wanted = change.wanted(requests::create_workflow)?;
    let caller = &change.caller;
    let workspace = caller.workspace().await?;
    let handle = wanted.handle.clone();
    let base = change.public_base();
    let made = change
        .make(async |changes| {
            let stored = workflows::create(changes, workspace, wanted).await?;
            ChangeReply::made(true, &records::workflow(stored, &base))
        })
        .await;
    told_of_handle(caller, made, workspace, handle).await
}

/// Adds to a taken-handle error that an archived workflow has the handle, since lists do not show it.
async fn told_of_handle(
    caller: &Caller<WorkflowsWrite>,
    answer: ApiResult<HttpResponse>,
    workspace: Uuid,
    handle: Option<String>,
) -> ApiResult<HttpResponse> {
    match (answer, handle) {
        (Err(taken), Some(handle)) if taken.code() == ErrorCode::WorkflowHandleTaken => {
            let by = caller.store().workflow(&WorkflowRef::Handle(handle), workspace).await?;
            let archived = by.is_some_and(|by| by.archived_at.is_some());
            let message = "An archived workflow has this handle.";
            Err(if archived { taken.with_message(message) } else { taken })
        }
        (answer, _) => answer,
    }
}

async fn show(
    caller: Caller<WorkflowsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<ShownWorkflow>> {
    let workflow = caller.workflow(&name).await?;
    query::none(&request)?;
    let readiness = credentials::readiness(&caller, &workflow).await?;
    let workflow = records::workflow(workflow, &caller.app().public_base(&request));
    Ok(Json(ShownWorkflow { workflow, readiness }))
}

/// Archives a workflow, which becomes read-only. Idempotent.
async fn archive(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    if workflow.is_public {
        // Archiving revokes the publication.
        caller.allowed(workflows::check_publishes(caller.requester(), workflow.workspace_id)).await?;
    }
    change.wants_no_more()?;
    let base = change.public_base();
    let answer = change
        .make(async |changes| {
            let archived = workflows::archive(changes, caller.requester(), &workflow).await?;
            ChangeReply::ok(&records::workflow(archived, &base))
        })
        .await;
    caller.noted(answer).await
}

/// Restores an archived workflow. Idempotent.
async fn restore(change: Change<WorkflowsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workflow = caller.workflow(&name).await?;
    change.wants_no_more()?;
    let base = change.public_base();
    change
        .make(async |changes| {
            let restored = workflows::restore(changes, caller.requester(), &workflow).await?;
            ChangeReply::ok(&records::workflow(restored, &base))
        })
        .await
}

/// Returns the public view of a workflow. An unpublished workflow is not found.
async fn public(app: Anyone, name: Path<String>, request: HttpRequest) -> ApiResult<Json<PublicWorkflow>> {
    let not_found = || ApiError::new(ErrorCode::WorkflowNotFound);
    let named = request.headers().get("x-workspace").map(|slug| slug.to_str().unwrap_or_default());
    let slug = named.unwrap_or(store::DEFAULT_WORKSPACE);
    let workspace = app.store().workspace_with_slug(slug).await?.ok_or_else(not_found)?.id;
    let found = app.store().workflow(&WorkflowRef::parse(&name), workspace).await?;
    let published = found.filter(|workflow| workflow.is_public && workflow.archived_at.is_none());
    let workflow = published.ok_or_else(not_found)?;
    query::none(&request)?;
    Ok(Json(records::public(workflow, &app.public_base(&request))))
}
