//! Shows and acknowledges permissions; publishes, rolls back, lists and shows releases.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use control::apps::{self, PublishOutcome};
use serde_json::{Map, Value};
use store::{Acknowledgement, StoredApp, StoredDeployment};
use uuid::Uuid;
use wire::{
    AcknowledgementRecord, ErrorCode, FieldError, Listed, PermissionsRecord, ReleaseRecord, ReleaseSummary,
};

use super::applied::{Applied, CheckedPermissions};
use super::{check_publishes, deployments, drafts, find, records};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::{AppsPublish, AppsRead, Caller};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;
use crate::http::query;
use crate::http::time;

/// The list's name in cursors.
const LIST: &str = "releases";
/// Maximum attempts to publish when the resolved parts change meanwhile.
const ATTEMPTS: usize = 3;

/// Returns a deployment's permissions as if published now.
pub(super) async fn permissions(
    caller: Caller<AppsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<PermissionsRecord>> {
    let (name, id) = path.into_inner();
    let app = find(&caller, &name).await?;
    let deployment = deployments::find(&caller, &app, &id).await?;
    query::none(&request)?;
    let applied = Applied::for_deployment(&caller, &app, &deployment).await?;
    let checked = applied.check(&caller, &app, records::declared(&deployment)?).await?;
    Ok(Json(checked.record(&caller, &app).await?))
}

/// Responds with 200 and the revision's first acknowledgement.
pub(super) async fn acknowledge(
    change: Change<AppsPublish>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (app, deployment) = publishable_deployment(caller, &path).await?;
    let revision = change.wanted_unique_if_any(|body| text(body, "permission_revision"))?;
    let applied = Applied::for_deployment(caller, &app, &deployment).await?;
    let CheckedPermissions { revision: current, .. } =
        applied.check(caller, &app, records::declared(&deployment)?).await?;
    if revision != current {
        return Err(ApiError::new(ErrorCode::PermissionRevisionStale));
    }
    let new = Acknowledgement {
        app_id: app.id,
        permission_revision: revision,
        workspace_id: app.workspace_id,
        acknowledged_by: caller.name(),
        acknowledged_at: caller.app().clock().now(),
    };
    change
        .make(async |changes| {
            let stored = apps::acknowledge(changes, caller.requester(), new).await?;
            ChangeReply::ok(&AcknowledgementRecord {
                permission_revision: stored.permission_revision,
                acknowledged_at: time(stored.acknowledged_at),
                acknowledged_by: stored.acknowledged_by,
            })
        })
        .await
}

/// Responds with 201 and the release.
pub(super) async fn publish(
    change: Change<AppsPublish>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (app, deployment) = publishable_deployment(caller, &path).await?;
    change.wants_no_more()?;
    if !deployment.listed.available {
        return Err(ApiError::new(ErrorCode::DeploymentStale));
    }
    let mut attempt = 1;
    loop {
        let applied = Applied::for_deployment(caller, &app, &deployment).await?;
        let checked = applied.check(caller, &app, records::declared(&deployment)?).await?;
        if attempt == 1 && caller.store().is_acknowledged(app.id, &checked.revision).await? {
            caller.app().system().encoder().prepare(app.workspace_id, deployment.listed.id).await;
        }
        let resolved = applied.resolve(checked, &deployment, caller.app().new_id()?)?;
        let made = change.make(async |changes| {
            let published =
                apps::publish(changes, caller.requester(), &app, &resolved, caller.name()).await?;
            match published {
                PublishOutcome::Released(made) => ChangeReply::made(true, &records::release(&made, true)?),
                PublishOutcome::TooManyCollections => Err(drafts::too_many_collections()),
            }
        });
        match made.await {
            // A workflow or a part of the app has changed since it was read.
            Err(error) if error.code() == ErrorCode::PermissionRevisionStale && attempt < ATTEMPTS => {
                attempt += 1;
            }
            answer => {
                caller.app().aliases().forget(&app.alias);
                return answer;
            }
        }
    }
}

/// Responds with 201 and the new release.
pub(super) async fn roll_back(change: Change<AppsPublish>, name: Path<String>) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let app = publishable_app(caller, &name).await?;
    let source = change.wanted_unique_if_any(|body| text(body, "release"))?;
    let source = Uuid::parse_str(&source).map_err(|_| ApiError::new(ErrorCode::ReleaseNotFound))?;
    let id = caller.app().new_id()?;
    let made = change
        .make(async |changes| {
            let made = apps::roll_back(changes, caller.requester(), &app, source, id, caller.name()).await?;
            ChangeReply::made(true, &records::release(&made, true)?)
        })
        .await;
    caller.app().aliases().forget(&app.alias);
    made
}

/// Lists the newest first.
pub(super) async fn list(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<ReleaseSummary>>> {
    let app = find(&caller, &name).await?;
    let part: PageQuery<i32> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().releases(app.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |release| release.number);
    let record = |row| records::release_summary(row, app.active_release);
    let data = found.into_iter().map(record).collect::<ApiResult<_>>()?;
    Ok(Json(Listed { data, next_cursor }))
}

pub(super) async fn show(
    caller: Caller<AppsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<ReleaseRecord>> {
    let (name, id) = path.into_inner();
    let app = find(&caller, &name).await?;
    let not_found = || ApiError::new(ErrorCode::ReleaseNotFound);
    let id = Uuid::parse_str(&id).map_err(|_| not_found())?;
    let found = caller.store().release(app.id, id).await?.ok_or_else(not_found)?;
    query::none(&request)?;
    Ok(Json(records::release(&found, app.active_release == Some(id))?))
}

/// Finds an app that the caller may publish.
async fn publishable_app(caller: &Caller<AppsPublish>, name: &str) -> ApiResult<StoredApp> {
    let app = find(caller, name).await?;
    check_publishes(caller, app.workspace_id).await?;
    Ok(app)
}

/// Finds a deployment that the caller may publish, and its app.
async fn publishable_deployment(
    caller: &Caller<AppsPublish>,
    path: &Path<(String, String)>,
) -> ApiResult<(StoredApp, StoredDeployment)> {
    let (name, id) = &**path;
    let app = publishable_app(caller, name).await?;
    let deployment = deployments::find(caller, &app, id).await?;
    Ok((app, deployment))
}

/// Reads the only member of a body.
fn text(body: &Map<String, Value>, name: &'static str) -> Result<String, Vec<FieldError>> {
    let mut fields = Fields::new(body);
    fields.require(name);
    let text = fields.text(name).unwrap_or_default().to_owned();
    let problems = fields.finish();
    if problems.is_empty() { Ok(text) } else { Err(problems) }
}
