//! From rows to what clients see.

use actix_web::HttpRequest;
use store::StoredApp;
use wire::{AppAccess, AppRecord};

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
