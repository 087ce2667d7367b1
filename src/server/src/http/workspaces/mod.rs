//! Workspaces and who belongs to them.

mod members;
mod records;
mod requests;
mod rights;

use actix_web::web::{self, Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::Scope;
use store::{AuditTarget, DEFAULT_WORKSPACE, NewWorkspace};
use uuid::Uuid;
use wire::{ErrorCode, Listed, WorkspaceRecord};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{Caller, WorkspacesRead, WorkspacesWrite, place};
use super::idempotency::Reply;
use super::paging::Part;
use super::query::Params;
use super::{get, resource};

/// In a cursor.
const LIST: &str = "workspaces";

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(
            resource("/api/workspaces", "GET, HEAD, POST")
                .route(get().to(list))
                .route(web::post().to(create)),
        )
        .service(
            resource("/api/workspaces/{id}", "DELETE, GET, HEAD, PATCH")
                .route(get().to(show))
                .route(web::patch().to(rename))
                .route(web::delete().to(delete)),
        )
        .service(
            resource("/api/workspaces/{id}/members", "GET, HEAD, POST")
                .route(get().to(members::list))
                .route(web::post().to(members::add)),
        )
        .service(
            resource("/api/workspaces/{id}/members/{user_id}", "DELETE, PATCH")
                .route(web::patch().to(members::change_role))
                .route(web::delete().to(members::remove)),
        );
}

/// Those that the caller may see, the newest first.
async fn list(
    caller: Caller<WorkspacesRead>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<WorkspaceRecord>>> {
    let mut query = Params::of(&request);
    let part: Part<Uuid> = Part::of(&mut query, LIST);
    ApiError::refuse(query.finish())?;
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

/// The user who makes a workspace owns it.
async fn create(change: Change<WorkspacesWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    if !caller.principal().may_make_workspaces() {
        return Err(caller.denied(ApiError::new(ErrorCode::WorkspaceForbidden)).await);
    }
    let wanted = change.wanted(requests::create)?;
    let name = wanted.name.as_deref().unwrap_or(&wanted.slug);
    let owner = caller.principal().user_id();
    let new = NewWorkspace { slug: &wanted.slug, name, owner };
    change
        .make(async |changes| {
            let made = changes.create_workspace(new).await?;
            changes.audit(&caller.audit("workspace.created", target(made.id), Some(made.id), None)).await?;
            let mut record = records::workspace(made, caller.principal());
            record.role = owner.map(|_| auth::role::Role::Owner.as_str().to_owned());
            Reply::made(true, &record)
        })
        .await
}

async fn show(
    caller: Caller<WorkspacesRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<WorkspaceRecord>> {
    let workspace = caller.workspace_called(&name).await?;
    ApiError::refuse(Params::of(&request).finish())?;
    let usage = caller.store().workspace_usage(workspace.id).await?;
    let limit = caller.app().runs().quota().limit();
    let storage = usage.map(|usage| records::storage(usage, limit));
    Ok(Json(WorkspaceRecord { storage, ..records::workspace(workspace, caller.principal()) }))
}

/// The slug stays: requests and tokens name the workspace by it.
async fn rename(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    let wanted = change.wanted(requests::update)?;
    let entry = caller.audit("workspace.renamed", target(workspace.id), Some(workspace.id), None);
    change
        .make(async |changes| {
            let renamed = changes.rename_workspace(workspace.id, &wanted.name).await?;
            let renamed = renamed.ok_or_else(|| ApiError::new(ErrorCode::WorkspaceNotFound))?;
            if renamed.name != workspace.name {
                changes.audit(&entry).await?;
            }
            Reply::ok(&records::workspace(renamed, caller.principal()))
        })
        .await
}

/// Takes the workspace away and archives its workflows; 204. Its owners may, and who may do everything everywhere.
async fn delete(change: Change<WorkspacesWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace_called(&name).await?;
    if !caller.principal().may_delete_workspace(workspace.id) {
        let refused = ApiError::new(ErrorCode::MissingScope)
            .with_message("Missing required scopes: deleting a workspace requires the role owner");
        return Err(caller.denied(refused).await);
    }
    change.wants_no_more()?;
    if workspace.slug == DEFAULT_WORKSPACE {
        return Err(ApiError::new(ErrorCode::WorkspaceIsDefault));
    }
    let entry = caller.audit("workspace.deleted", target(workspace.id), Some(workspace.id), None);
    let mut archived = Vec::new();
    let answer = change
        .make(async |changes| {
            let deleted = changes.delete_workspace(workspace.id).await?;
            archived = deleted.ok_or_else(|| ApiError::new(ErrorCode::WorkspaceNotFound))?;
            for workflow in &archived {
                let target = AuditTarget { kind: "workflow", id: workflow.to_string() };
                let reason = Some("its workspace was deleted".to_owned());
                let entry = caller.audit("workflow.archived", target, Some(workspace.id), reason);
                changes.audit(&entry).await?;
            }
            changes.audit(&entry).await?;
            Ok(Reply::nothing())
        })
        .await;
    for workflow in archived {
        caller.app().chat().forget(workflow);
    }
    answer
}

fn target(id: Uuid) -> AuditTarget {
    AuditTarget { kind: "workspace", id: id.to_string() }
}
