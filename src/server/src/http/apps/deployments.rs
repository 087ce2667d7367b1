//! Deployments: bundles that are uploaded, checked and stored; listed and shown.

use std::collections::BTreeMap;

use actix_web::web::{Json, Path};
use actix_web::{HttpRequest, HttpResponse};
use bundle::{Accepted, MANIFEST};
use control::apps;
use store::{DeploymentFile, ListedDeployment, NewFile, StoredApp, StoredDeployment};
use uuid::Uuid;
use wire::{
    AppBinding, AppCollection, CollectionRecord, DeploymentNote, DeploymentRecord, DeploymentReport,
    DeploymentSummary, ErrorCode, Listed,
};

use super::preflight::preflight;
use super::upload::{Checked, Upload, check};
use super::{find, records};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{AppsRead, AppsWrite, Asked, Caller};
use crate::http::idempotency::Reply;
use crate::http::paging::Part;
use crate::http::query::{self, Params};

/// In a cursor.
const LIST: &str = "deployments";

/// The newest first.
pub(super) async fn list(
    caller: Caller<AppsRead>,
    name: Path<String>,
    request: HttpRequest,
) -> ApiResult<Json<Listed<DeploymentSummary>>> {
    let app = find(&caller, &name).await?;
    let mut query = Params::of(&request);
    let part: Part<Uuid> = Part::of(&mut query, LIST);
    ApiError::refuse(query.finish())?;
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
    let app = find(&caller, &name).await?;
    let not_found = || ApiError::new(ErrorCode::DeploymentNotFound);
    let id = Uuid::parse_str(&id).map_err(|_| not_found())?;
    let found = caller.store().deployment(app.id, id).await?.ok_or_else(not_found)?;
    query::none(&request)?;
    let files = caller.store().deployment_files(found.listed.id).await?;
    Ok(Json(records::deployment(&found, files)?))
}

/// 201 with the record.
pub(super) async fn create(upload: Upload<AppsWrite>) -> ApiResult<HttpResponse> {
    let (checked, declared) = match accepted(&upload).await {
        Ok(accepted) => accepted,
        Err(error) => {
            audit_refusal(&upload.caller, &upload.app, &error).await?;
            return Err(error);
        }
    };
    checked.store_files(&upload).await?;
    let Checked(accepted) = checked;
    let new = row(&upload, &accepted, &declared)?;
    let files = accepted.files.iter().map(file).collect::<Vec<_>>();
    upload
        .make(async |changes| {
            let made = apps::deploy(changes, upload.caller.requester(), new, &files).await?;
            let files = files.into_iter().map(|new| new.file).collect();
            Reply::made(true, &records::deployment(&made, files)?)
        })
        .await
}

/// What applies to a deployment.
struct Applied {
    bindings: BTreeMap<String, AppBinding>,
    collections: BTreeMap<String, AppCollection>,
}

/// Checks the archive, and the workflows of the bindings that apply to it.
async fn accepted(upload: &Upload<AppsWrite>) -> ApiResult<(Checked, Applied)> {
    let checked = check(upload).await?;
    let (store, app, declared) = (upload.caller.store(), &upload.app, checked.0.manifest.as_ref());
    let mut applied = Applied {
        bindings: declared.map(|manifest| manifest.bindings.clone()).unwrap_or_default(),
        collections: declared.and_then(|manifest| manifest.collections.clone()).unwrap_or_default(),
    };
    if declared.is_none() {
        for row in store.bindings(app.id, None, i64::MAX).await? {
            applied.bindings.insert(row.name, records::stored(&row.binding)?);
        }
    }
    if declared.is_none_or(|manifest| manifest.collections.is_none()) {
        for row in store.collections(app.id, None, i64::MAX).await? {
            let CollectionRecord { name, kind, capabilities, schema, .. } = records::collection(row)?;
            applied.collections.insert(name, AppCollection { kind, capabilities, schema });
        }
    }
    let path = if declared.is_some() { MANIFEST } else { "bindings" };
    let findings =
        preflight(store, app.workspace_id, &applied.bindings, (path, &**upload.caller.app().clock())).await?;
    if findings.is_empty() { Ok((checked, applied)) } else { Err(ApiError::found(findings)) }
}

/// Notes a bundle that was refused in the audit trail.
pub(super) async fn audit_refusal<S: Asked>(
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
    Ok(StoredDeployment {
        listed,
        bindings: records::json(&applied.bindings)?,
        declares_bindings: declared.is_some(),
        collections: records::json(&applied.collections)?,
        declares_collections: declared.is_some_and(|manifest| manifest.collections.is_some()),
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

/// JSON of the report.
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
