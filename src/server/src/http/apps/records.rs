//! From rows to what clients see.

use actix_web::HttpRequest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use store::{DeploymentFile, ListedDeployment, StoredApp, StoredBinding, StoredCollection, StoredDeployment};
use wire::{
    AppAccess, AppRecord, BindingRecord, CollectionKind, CollectionRecord, DeploymentFileRecord,
    DeploymentRecord, DeploymentSummary, ErrorCode,
};

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, time};

pub(super) fn record(row: StoredApp, app: &App, request: &HttpRequest) -> AppRecord {
    AppRecord {
        id: row.id.to_string(),
        url: app.url_of_alias(request, &row.alias),
        alias: row.alias,
        name: row.name,
        workspace_id: row.workspace_id.to_string(),
        // What is not known is open to members only.
        access: AppAccess::from_name(&row.access).unwrap_or(AppAccess::Members),
        active_release: None,
        permission_revision: None,
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

pub(super) fn deployment(row: &StoredDeployment, files: Vec<DeploymentFile>) -> ApiResult<DeploymentRecord> {
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
        report: stored(&row.report)?,
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

/// JSON as it is stored.
pub(super) fn json(value: &impl Serialize) -> ApiResult<String> {
    serde_json::to_string(value).map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))
}
