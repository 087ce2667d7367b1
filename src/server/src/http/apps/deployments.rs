//! Uploads, checks, stores, lists and shows deployments.

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use bundle::Accepted;
use control::apps;
use store::{DeploymentFile, ListedDeployment, NewFile, StoredApp, StoredDeployment};
use uuid::Uuid;
use wire::{DeploymentNote, DeploymentRecord, DeploymentReport, DeploymentSummary, ErrorCode, Listed};

use super::applied::{Applied, CheckedPermissions};
use super::permissions::PagePermissions;
use super::records;
use super::upload::{CheckedBundle, Upload, check};
use crate::http::change::Change;
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{AppsRead, AppsWrite, Caller, RouteScope};
use crate::http::idempotency::ChangeReply;
use crate::http::paging::PageQuery;
use crate::http::query;

/// The list's name in cursors.
const LIST: &str = "deployments";

/// Lists the newest first.
pub(super) async fn list(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<DeploymentSummary>>> {
    let app = super::find(&caller, &name).await?;
    let part: PageQuery<Uuid> = PageQuery::from_request(&request, LIST)?;
    let mut found = caller.store().deployments(app.id, part.after, part.wanted()).await?;
    let next_cursor = part.cut(LIST, &mut found, |deployment| deployment.id);
    let data = found.iter().map(records::deployment_summary).collect::<ApiResult<_>>()?;
    Ok(Json(Listed { data, next_cursor }))
}

pub(super) async fn show(
    caller: Caller<AppsRead>,
    path: Path<(String, String)>,
    request: HttpRequest,
) -> ApiResult<Json<DeploymentRecord>> {
    let (name, id) = path.into_inner();
    let app = super::find(&caller, &name).await?;
    let found = find(&caller, &app, &id).await?;
    query::none(&request)?;
    let files = caller.store().deployment_files(found.listed.id).await?;
    let applied = Applied::for_deployment(&caller, &app, &found).await?;
    let permissions = match applied.inspect(&caller, &app, records::declared(&found)?).await? {
        Ok(checked) => Some(checked.record(&caller, &app).await?),
        Err(_) => None,
    };
    Ok(Json(records::deployment(&found, files, permissions)?))
}

/// Responds with 204.
pub(super) async fn delete(
    change: Change<AppsWrite>,
    path: Path<(String, String)>,
) -> ApiResult<HttpResponse> {
    let caller = &change.caller;
    let (name, id) = path.into_inner();
    let app = super::find(caller, &name).await?;
    let deployment = find(caller, &app, &id).await?.listed.id;
    change.wants_no_more()?;
    change
        .delete(async |changes| {
            apps::delete_deployment(changes, caller.requester(), app.id, deployment).await
        })
        .await
}

/// Finds an app's deployment by id.
pub(super) async fn find<S>(caller: &Caller<S>, app: &StoredApp, id: &str) -> ApiResult<StoredDeployment> {
    let not_found = || ApiError::new(ErrorCode::DeploymentNotFound);
    let id = Uuid::parse_str(id).map_err(|_| not_found())?;
    caller.store().deployment(app.id, id).await?.ok_or_else(not_found)
}

/// Responds with 201 and the record.
pub(super) async fn create(upload: Upload<AppsWrite>) -> ApiResult<HttpResponse> {
    let (bundle, applied, checked) = match accepted(&upload).await {
        Ok(accepted) => accepted,
        Err(error) => {
            audit_refusal(&upload.caller, &upload.app, &error).await?;
            return Err(error);
        }
    };
    bundle.store_files(&upload).await?;
    let CheckedBundle(accepted) = bundle;
    let new = row(&upload, &accepted, &applied)?;
    let files = accepted.files.iter().map(file).collect::<Vec<_>>();
    let permissions = checked.record(&upload.caller, &upload.app).await?;
    let made = upload
        .make(async |changes| {
            let made = apps::deploy(changes, upload.caller.requester(), new, &files).await?;
            let files = files.into_iter().map(|new| new.file).collect();
            ChangeReply::made(true, &records::deployment(&made, files, Some(permissions))?)
        })
        .await?;
    // Evicts the oldest deployment at once; after a failure, the next retention round does it.
    if let Err(error) = upload.caller.store().forget_old_deployments_of(upload.app.id).await {
        tracing::warn!(app = %upload.app.id, %error, "failed to delete files of old deployments; retrying later");
    }
    Ok(made)
}

/// Checks the archive and the workflows of the bindings that apply.
async fn accepted(upload: &Upload<AppsWrite>) -> ApiResult<(CheckedBundle, Applied, CheckedPermissions)> {
    let bundle = check(upload).await?;
    let (caller, app, declared) = (&upload.caller, &upload.app, bundle.0.manifest.as_ref());
    let bindings = declared.map(|manifest| manifest.bindings.clone());
    let collections = declared.and_then(|manifest| manifest.collections.clone());
    let applied = Applied::new(caller, app, bindings, collections).await?;
    let frame_ancestors = declared.map(|manifest| manifest.frame_ancestors.clone()).unwrap_or_default();
    let pages = PagePermissions { frame_ancestors, wasm: bundle.0.wasm };
    let checked = applied.check(caller, app, pages).await?;
    Ok((bundle, applied, checked))
}

/// Records a refused bundle in the audit trail.
pub(super) async fn audit_refusal<S: RouteScope>(
    caller: &Caller<S>,
    app: &StoredApp,
    error: &ApiError,
) -> ApiResult<()> {
    if error.is_of_bundle() {
        caller.store().audit(&apps::refused(caller.requester(), app, error.code())).await?;
    }
    Ok(())
}

fn row(upload: &Upload<AppsWrite>, accepted: &Accepted, applied: &Applied) -> ApiResult<StoredDeployment> {
    let app = upload.caller.app();
    let declared = accepted.manifest.as_ref();
    let frame_ancestors = declared.map(|manifest| manifest.frame_ancestors.as_slice()).unwrap_or_default();
    let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let listed = ListedDeployment {
        id: app.new_id()?,
        app_id: upload.app.id,
        workspace_id: upload.app.workspace_id,
        digest: upload.digest.to_vec(),
        size: size(accepted.size),
        expanded_size: size(accepted.expanded_size),
        file_count: i32::try_from(accepted.files.len()).unwrap_or(i32::MAX),
        available: true,
        spa: declared.is_some_and(|manifest| manifest.spa),
        frame_ancestors: records::json(&frame_ancestors)?,
        wasm: accepted.wasm,
        created_by: upload.caller.name(),
        created_at: app.clock().now(),
    };
    let (declares_bindings, declares_collections) = applied.declares();
    Ok(StoredDeployment {
        listed,
        bindings: records::json(&applied.bindings)?,
        declares_bindings,
        collections: records::json(&applied.collections)?,
        declares_collections,
        report: report(accepted)?,
    })
}

fn file(file: &bundle::File) -> NewFile {
    let listed = DeploymentFile {
        path: file.path.clone(),
        size: i64::try_from(file.size).unwrap_or(i64::MAX),
        media_type: file.media_type.to_owned(),
        digest: file.digest.to_vec(),
    };
    NewFile { file: listed, policy: file.policy.clone() }
}

/// The report as JSON.
fn report(accepted: &Accepted) -> ApiResult<String> {
    let note = |note: &bundle::Note| DeploymentNote {
        code: note.code.to_owned(),
        path: note.path.clone(),
        line: note.line,
        detail: note.detail.clone(),
    };
    let notes = accepted.notes.iter().map(note).collect();
    records::json(&DeploymentReport { dropped: accepted.dropped.clone(), notes })
}
