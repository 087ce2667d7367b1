//! An app's own bindings and collections, which apply to deployments whose manifests declare none.

use std::sync::Arc;

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use bundle::declared::{self, Declared};
use bundle::{CheckError, Finding};
use chrono::DateTime;
use control::{Decision, Requester, apps};
use kernel::Clock;
use store::{Changes, StoredBinding, StoredCollection};
use tokio::task::spawn_blocking;
use uuid::Uuid;
use wire::{
    BindingRecord, BundleFinding, CollectionRecord, ErrorCode, Listed, MAX_BINDINGS, MAX_COLLECTIONS,
};

use super::upload::busy;
use super::{find, records};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{AppsRead, AppsWrite, Caller};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;
use crate::http::query::Params;

/// The lists' names in cursors.
const BINDINGS: &str = "bindings";
const COLLECTIONS: &str = "collections";

/// Lists the newest first.
pub(super) async fn list_bindings(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<BindingRecord>>> {
    let app = find(&caller, &name).await?;
    let mut query = Params::from_request(&request);
    let part: PageQuery<String> = PageQuery::from_params(&mut query, BINDINGS);
    let after = part.after.as_deref().and_then(parse_cursor);
    if part.after.is_some() && after.is_none() {
        query.note("cursor", "format", "is not a cursor of this list; use next_cursor unchanged");
    }
    ApiError::refuse(query.finish())?;
    let mut found = caller.store().bindings(app.id, after, part.wanted()).await?;
    let last = |one: &StoredBinding| format!("{}:{}", one.created_at.timestamp_micros(), one.name);
    let next_cursor = part.cut(BINDINGS, &mut found, last);
    let data = found.into_iter().map(records::binding).collect::<ApiResult<_>>()?;
    Ok(Json(Listed { data, next_cursor }))
}

/// The last binding of the previous page.
fn parse_cursor(cursor: &str) -> Option<(DateTime<chrono::Utc>, &str)> {
    // PostgreSQL rejects NUL.
    let (at, name) = cursor.split_once(':').filter(|(_, name)| !name.contains('\0'))?;
    Some((DateTime::from_timestamp_micros(at.parse().ok()?)?, name))
}

/// Responds with 201 for a new name, 200 for a replaced binding.
pub(super) async fn set_binding(
    change: Change<AppsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (app, name) = path.into_inner();
    let app = find(caller, &app).await?;
    change.wanted(|_| Ok(()))?;
    let (text, named) = (change.bytes().clone(), name.clone());
    let read = move |clock: &dyn Clock| declared::binding(&named, &text, clock);
    let binding = records::json(&read_declared(caller, "bindings", read).await?)?;
    change
        .make(async |changes| {
            let set = apps::set_binding(changes, caller.requester(), app.id, &name, &binding).await?;
            let (set, is_new) = set.ok_or_else(|| full("bindings", MAX_BINDINGS))?;
            ChangeReply::made(is_new, &records::binding(set)?)
        })
        .await
}

/// Responds with 204.
pub(super) async fn delete_binding(
    change: Change<AppsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    delete(&change, path, async |changes, by, app, name| apps::delete_binding(changes, by, app, name).await)
        .await
}

/// Lists the newest first.
pub(super) async fn list_collections(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<CollectionRecord>>> {
    let app = find(&caller, &name).await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, COLLECTIONS)?;
    let mut found = caller.store().collections(app.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(COLLECTIONS, &mut found, |collection| collection.id);
    let data = found.into_iter().map(records::collection).collect::<ApiResult<_>>()?;
    Ok(Json(Listed { data, next_cursor }))
}

/// Responds with 201.
pub(super) async fn create_collection(
    change: Change<AppsWrite>,
    app: Path<String>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let app = find(caller, &app).await?;
    change.wanted(|_| Ok(()))?;
    let text = change.bytes().clone();
    let read = move |clock: &dyn Clock| declared::collection(&text, clock);
    let (name, collection) = read_declared(caller, "collections", read).await?;
    let new = StoredCollection {
        id: caller.app().new_id()?,
        app_id: app.id,
        workspace_id: app.workspace_id,
        name,
        kind: collection.kind.as_str().to_owned(),
        capabilities: records::json(&collection.capabilities)?,
        schema: collection.schema.as_ref().map(records::json).transpose()?,
        created_at: caller.app().clock().now(),
    };
    change
        .make(async |changes| {
            let made = apps::create_collection(changes, caller.requester(), new).await?;
            let made = made.ok_or_else(too_many_collections)?;
            ChangeReply::made(true, &records::collection(made)?)
        })
        .await
}

/// Responds with 204.
pub(super) async fn delete_collection(
    change: Change<AppsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    delete(&change, path, async |changes, by, app, name| {
        apps::delete_collection(changes, by, app, name).await
    })
    .await
}

async fn delete(
    change: &Change<AppsWrite>,
    path: Path<(String, String)>,
    delete: impl AsyncFnOnce(&mut Changes, Requester<'_>, Uuid, &str) -> Decision<()>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (app, name) = path.into_inner();
    let app = find(caller, &app).await?;
    change.wants_no_more()?;
    change.delete(async |changes| delete(changes, caller.requester(), app.id, &name).await).await
}

/// The error for an app with the maximum number of collections.
pub(super) fn too_many_collections() -> ApiError {
    full("collections", MAX_COLLECTIONS)
}

/// The error for an app with the maximum number of parts.
fn full(part: &str, most: usize) -> ApiError {
    let code = ErrorCode::ManifestInvalid.as_str().to_owned();
    let (path, detail) = (Some(part.to_owned()), format!("An app has at most {most} {part}."));
    ApiError::found(vec![BundleFinding { code, path, line: None, detail }])
}

/// Parses a body by the rules for manifests on a blocking thread, so that no request waits.
async fn read_declared<S, T: Send + 'static>(
    caller: &Caller<S>,
    part: &'static str,
    read: impl FnOnce(&dyn Clock) -> Result<Declared<T>, CheckError> + Send + 'static,
) -> ApiResult<T> {
    let clock: Arc<dyn Clock> = Arc::clone(caller.app().clock());
    let read = spawn_blocking(move || read(&*clock)).await;
    let read = read.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    read.map_err(|_| busy())?.map_err(|findings| ApiError::found(found_in(part, findings)))
}

/// Converts findings about a part that is not in a file.
pub(super) fn found_in(part: &str, findings: Vec<Finding>) -> Vec<BundleFinding> {
    let finding = |found: Finding| BundleFinding {
        code: found.code.as_str().to_owned(),
        path: Some(part.to_owned()),
        line: found.line,
        detail: found.detail,
    };
    findings.into_iter().map(finding).collect()
}
