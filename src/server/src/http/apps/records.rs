//! Maps rows to API records.

use actix_web::HttpRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{
    DeploymentFile, ListedDeployment, ListedRelease, StoredApp, StoredBinding, StoredCollection,
    StoredDeployment, StoredRelease,
};
use uuid::Uuid;
use wire::{
    ActiveRelease, AppAccess, AppRecord, BindingRecord, CollectionKind, CollectionRecord,
    DeploymentFileRecord, DeploymentRecord, DeploymentSummary, ErrorCode, PermissionsRecord, ReleaseRecord,
    ReleaseSummary,
};

use super::permissions::PagePermissions;
use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, time};

/// `release` is the active one.
pub(super) fn record(
    row: StoredApp,
    release: Option<&ListedRelease>,
    app: &App,
    request: &HttpRequest,
) -> AppRecord {
    AppRecord {
        id: row.id.to_string(),
        url: app.url_of_alias(request, &row.alias),
        alias: row.alias,
        name: row.name,
        workspace_id: row.workspace_id.to_string(),
        // An unknown access value means members only.
        access: AppAccess::from_name(&row.access).unwrap_or(AppAccess::Members),
        active_release: release.map(|release| ActiveRelease {
            id: release.id.to_string(),
            number: release.number,
            deployment_id: release.deployment_id.to_string(),
            created_at: time(release.created_at),
        }),
        permission_revision: release.map(|release| release.permission_revision.clone()),
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    }
}

pub(super) fn deployment_summary(row: &ListedDeployment) -> ApiResult<DeploymentSummary> {
    Ok(DeploymentSummary {
        id: row.id.to_string(),
        app_id: row.app_id.to_string(),
        digest: hex::encode(&row.digest),
        size: row.size,
        expanded_size: row.expanded_size,
        file_count: row.file_count,
        available: row.available,
        spa: row.spa,
        frame_ancestors: stored(&row.frame_ancestors)?,
        wasm: row.wasm,
        created_at: time(row.created_at),
        created_by: row.created_by.clone(),
    })
}

/// `permissions` are the current ones, if known.
pub(super) fn deployment(
    row: &StoredDeployment,
    files: Vec<DeploymentFile>,
    permissions: Option<PermissionsRecord>,
) -> ApiResult<DeploymentRecord> {
    let file = |file: DeploymentFile| DeploymentFileRecord {
        path: file.path,
        size: file.size,
        media_type: file.media_type,
        digest: hex::encode(file.digest),
    };
    Ok(DeploymentRecord {
        summary: deployment_summary(&row.listed)?,
        files: files.into_iter().map(file).collect(),
        bindings: stored(&row.bindings)?,
        collections: stored(&row.collections)?,
        permissions,
        report: stored(&row.report)?,
    })
}

/// A deployment's other declarations: frame origins and WebAssembly.
pub(super) fn declared(row: &StoredDeployment) -> ApiResult<PagePermissions> {
    Ok(PagePermissions { frame_ancestors: stored(&row.listed.frame_ancestors)?, wasm: row.listed.wasm })
}

pub(super) fn release_summary(row: ListedRelease, active: Option<Uuid>) -> ApiResult<ReleaseSummary> {
    Ok(ReleaseSummary {
        active: active == Some(row.id),
        id: row.id.to_string(),
        app_id: row.app_id.to_string(),
        number: row.number,
        deployment_id: row.deployment_id.to_string(),
        source_release_id: row.source_release_id.map(|id| id.to_string()),
        permission_revision: row.permission_revision,
        spa: row.spa,
        frame_ancestors: stored(&row.frame_ancestors)?,
        wasm: row.wasm,
        created_at: time(row.created_at),
        created_by: row.created_by,
    })
}

pub(super) fn release(row: &StoredRelease, is_active: bool) -> ApiResult<ReleaseRecord> {
    Ok(ReleaseRecord {
        summary: release_summary(row.listed(), is_active.then_some(row.id))?,
        bindings: stored(&row.bindings)?,
        collections: stored(&row.collections)?,
    })
}

pub(super) fn binding(row: StoredBinding) -> ApiResult<BindingRecord> {
    Ok(BindingRecord {
        binding: stored(&row.binding)?,
        name: row.name,
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    })
}

pub(super) fn collection(row: StoredCollection) -> ApiResult<CollectionRecord> {
    Ok(CollectionRecord {
        id: row.id.to_string(),
        kind: CollectionKind::from_name(&row.kind).ok_or_else(|| ApiError::new(ErrorCode::Internal))?,
        capabilities: stored(&row.capabilities)?,
        schema: row.schema.as_deref().map(stored).transpose()?,
        name: row.name,
        created_at: time(row.created_at),
    })
}

pub(super) fn stored<T: DeserializeOwned>(json: &str) -> ApiResult<T> {
    serde_json::from_str(json).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}

/// Serializes JSON for storage.
pub(super) fn json(value: &impl Serialize) -> ApiResult<String> {
    serde_json::to_string(value).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}
