//! Hosted apps.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, delete, get, json, operations, patch, post};
use crate::{AppRecord, CreateApp, ErrorCode, Listed, Scope, UpdateApp};

operations! {
    LIST = get("/api/apps", "list_apps", "Lists the apps of the workspace, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::of(200, json!(Listed<AppRecord>))]);

    CREATE = post("/api/apps", "create_app", "Creates an app. Its host answers as if it did not exist until a release is published.")
        .needs(Scope::AppsWrite)
        .repeatable()
        .body(json!(CreateApp, examples::CREATE))
        .answers(&[Answer::of(201, json!(AppRecord, examples::APP))])
        .errors(&[ErrorCode::AliasTaken]);

    READ = get("/api/apps/{app}", "read_app", "Shows an app.")
        .needs(Scope::AppsRead)
        .answers(&[Answer::of(200, json!(AppRecord))])
        .errors(&[ErrorCode::AppNotFound]);

    UPDATE = patch(
        "/api/apps/{app}",
        "update_app",
        "Changes the name of an app, or who can open it; what is not given stays. `access` also needs `apps:publish`, and of members the \
         role admin or owner.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .body(json!(UpdateApp, examples::UPDATE))
    .answers(&[Answer::of(200, json!(AppRecord))])
    .errors(&[ErrorCode::AppNotFound]);

    DELETE = delete(
        "/api/apps/{app}",
        "delete_app",
        "Deletes an app with its deployments. No other app can have its alias for 30 days.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::AppNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "alias": "refunds",
  "name": "Refunds"
}"#;

    pub(super) const APP: &str = r#"{
  "id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "alias": "refunds",
  "name": "Refunds",
  "workspace_id": "0198c2e0-40bb-7c12-a0e5-1b8c7d6e5f4a",
  "access": "public",
  "url": "https://refunds.apps.example.org",
  "active_release": null,
  "permission_revision": null,
  "created_at": "2026-11-22T09:00:00.000000Z",
  "updated_at": "2026-11-22T09:00:00.000000Z"
}"#;

    pub(super) const UPDATE: &str = r#"{
  "access": "members"
}"#;
}
