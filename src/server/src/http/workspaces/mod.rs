//! Workspaces and their members.

mod members;
mod records;
mod requests;

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::Scope;
use control::workspaces;
use uuid::Uuid;
use wire::operations::workspaces as operations;
use wire::{Listed, WorkspaceRecord};

use super::change::Change;
use super::error::ApiResult;
use super::guard::{Caller, WorkspacesRead, WorkspacesWrite, place};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::query;
use super::routes::Routes;

/// The list's name in cursors.
const LIST: &str = "workspaces";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, list)
        .on(&operations::CREATE, create)
        .on(&operations::READ, show)
        .on(&operations::UPDATE, update)
        .on(&operations::DELETE, delete)
        .on(&operations::LIST_MEMBERS, members::list)
        .on(&operations::ADD_MEMBER, members::add)
        .on(&operations::CHANGE_MEMBER, members::change_role)
        .on(&operations::REMOVE_MEMBER, members::remove)
        .register(config);
}

/// Lists the workspaces visible to the caller, newest first.
async fn list(
    caller: Caller<WorkspacesRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<WorkspaceRecord>>> {
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, LIST)?;
    let only = match caller.principal().workspaces() {
        None => None,
        Some(names) => {
            let mut open = caller.store().workspaces_named(&names).await?;
            open.retain(|found| caller.principal().may_in(Scope::WorkspacesRead, place(found)).is_ok());
            Some(open.into_iter().map(|found| found.id).collect())
        }
    };
    let mut found = caller.store().workspaces(only, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |workspace| workspace.id);
    let data = found.into_iter().map(|found| records::workspace(found, caller.principal())).collect();
    Ok(Json(Listed { data, next_cursor }))
}

/// Creates a workspace, owned by the calling user.
async fn create(change: Change<WorkspacesWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    caller.allowed(workspaces::check_creates(caller.requester())).await?;
    let wanted = change.wanted(requests::create)?;
    let name = wanted.name.as_deref().unwrap_or(&wanted.slug);
    let owner = caller.principal().user_id();
    change
        .make(async |changes| {
            let made = workspaces::create(changes, caller.requester(), &wanted.slug, name).await?;
            let mut record = records::workspace(made, caller.principal());
            record.role = owner.map(|_| auth::role::Role::Owner.as_str().to_owned());
            ChangeReply::made(true, &record)
        })
        .await
}

async fn show(
    caller: Caller<WorkspacesRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<WorkspaceRecord>> {
    let workspace = caller.workspace_called(&name).await?;
    query::none(&request)?;
    let usage = caller.store().workspace_usage(workspace.id).await?;
    let limit = caller.app().runs().quota().limit();
    let storage = usage.map(|usage| records::storage(usage, limit));
    Ok(Json(WorkspaceRecord { storage, ..records::workspace(workspace, caller.principal()) }))
}

/// Responds with 200 and the record.
async fn update(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    let wanted = change.wanted(requests::update)?;
    change
        .make(async |changes| {
            let changed = workspaces::update(changes, caller.requester(), &workspace, wanted).await?;
            ChangeReply::ok(&records::workspace(changed, caller.principal()))
        })
        .await
}

/// Responds with 204.
async fn delete(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    caller.allowed(workspaces::check_deletes(caller.requester(), &workspace)).await?;
    change.wants_no_more()?;
    change.delete(async |changes| workspaces::delete(changes, caller.requester(), &workspace).await).await
}
