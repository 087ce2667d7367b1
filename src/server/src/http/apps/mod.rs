//! Hosted apps: create, update, deploy, publish, delete.

mod applied;
mod deployments;
mod drafts;
mod permissions;
mod preflight;
mod records;
mod releases;
mod requests;
mod runs;
mod upload;

use actix_web::web::{Json, Path, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse};
use control::apps;
use serde_json::Value;
use store::StoredApp;
use uuid::Uuid;
use wire::operations::{apps as operations, releases as release_operations};
use wire::{AppRecord, ErrorCode, Listed};

use super::change::Change;
use super::error::{ApiError, ApiResult};
use super::guard::{AppsRead, AppsWrite, Caller, RouteScope};
use super::idempotency::ChangeReply;
use super::paging::PageQuery;
use super::query;
use super::routes::Routes;
use records::record;
pub(crate) use upload::BundleUploads;

/// The list's name in cursors.
const LIST: &str = "apps";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::LIST, list)
        .on(&operations::CREATE, create)
        .on(&operations::READ, show)
        .on(&operations::UPDATE, update)
        .on(&operations::DELETE, delete)
        .on(&operations::LIST_DEPLOYMENTS, deployments::list)
        .on(&operations::DEPLOY, deployments::create)
        .on(&operations::READ_DEPLOYMENT, deployments::show)
        .on(&operations::DELETE_DEPLOYMENT, deployments::delete)
        .on(&operations::LIST_BINDINGS, drafts::list_bindings)
        .on(&operations::SET_BINDING, drafts::set_binding)
        .on(&operations::DELETE_BINDING, drafts::delete_binding)
        .on(&operations::LIST_COLLECTIONS, drafts::list_collections)
        .on(&operations::CREATE_COLLECTION, drafts::create_collection)
        .on(&operations::DELETE_COLLECTION, drafts::delete_collection)
        .on(&operations::LIST_RUNS, runs::list)
        .on(&release_operations::PERMISSIONS, releases::permissions)
        .on(&release_operations::ACKNOWLEDGE, releases::acknowledge)
        .on(&release_operations::PUBLISH, releases::publish)
        .on(&release_operations::ROLL_BACK, releases::roll_back)
        .on(&release_operations::LIST, releases::list)
        .on(&release_operations::READ, releases::show)
        .register(config);
}

/// Lists the newest first.
async fn list(caller: Caller<AppsRead>, request: HttpRequest) -> ApiResult<Json<Listed<AppRecord>>> {
    let workspace = caller.workspace().await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().apps(workspace, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |app| app.id);
    let active: Vec<Uuid> = found.iter().filter_map(|app| app.active_release).collect();
    let active = caller.store().releases_of(&active).await?;
    let data = found.into_iter().map(|app| {
        let release = active.iter().find(|release| Some(release.id) == app.active_release);
        record(app, release, caller.app(), &request)
    });
    let data = data.collect();
    Ok(Json(Listed { data, next_cursor }))
}

async fn create(change: Change<AppsWrite>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let workspace = caller.workspace().await?;
    let wanted = change.wanted_unique(requests::create)?;
    change
        .make(async |changes| {
            let made = apps::create(changes, caller.requester(), workspace, &wanted).await?;
            ChangeReply::made(true, &record(made, None, caller.app(), change.request()))
        })
        .await
}

async fn show(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<AppRecord>> {
    let app = find(&caller, &name).await?;
    query::none(&request)?;
    let active = match app.active_release {
        Some(id) => caller.store().releases_of(&[id]).await?,
        None => Vec::new(),
    };
    Ok(Json(record(app, active.first(), caller.app(), &request)))
}

/// Responds with 200 and the record.
async fn update(change: Change<AppsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let app = find(caller, &name).await?;
    let mut discloses = false;
    let wanted = change.wanted_unique(|body| {
        discloses = body.get("access").is_some_and(|access| *access != Value::Null);
        requests::update(body)
    });
    if discloses {
        check_publishes(caller, app.workspace_id).await?;
    }
    let wanted = wanted?;
    let made = change
        .make(async |changes| {
            let changed = apps::update(changes, caller.requester(), app.id, wanted).await?;
            let active = match changed.active_release {
                Some(active) => changes.release(changed.id, active).await?,
                None => None,
            };
            let active = active.map(|release| release.listed());
            ChangeReply::ok(&record(changed, active.as_ref(), caller.app(), change.request()))
        })
        .await;
    caller.app().aliases().forget(&app.alias);
    made
}

/// Responds with 204.
async fn delete(change: Change<AppsWrite>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let app = find(caller, &name).await?;
    change.wants_no_more()?;
    let made = change.delete(async |changes| apps::delete(changes, caller.requester(), &app).await).await;
    caller.app().aliases().forget(&app.alias);
    made
}

/// Finds the app with this id or alias, in a workspace that the caller can access.
async fn find<S: RouteScope>(caller: &Caller<S>, name: &str) -> ApiResult<StoredApp> {
    let found = caller.store().app(name).await?.ok_or_else(|| ApiError::new(ErrorCode::AppNotFound))?;
    caller.enter_workspace_of(found.workspace_id).await?;
    Ok(found)
}

/// Checks that the caller may publish to visitors of the workspace's apps.
async fn check_publishes<S: RouteScope>(caller: &Caller<S>, workspace: Uuid) -> ApiResult<()> {
    let workspace = caller.store().workspace(workspace).await?;
    let workspace = workspace.ok_or_else(|| ApiError::new(ErrorCode::AppNotFound))?;
    caller.allowed(apps::check_publishes(caller.requester(), &workspace)).await
}
