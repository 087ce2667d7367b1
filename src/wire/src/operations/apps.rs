//! Hosted apps.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, binary, delete, get, json, operations, patch, post, put};
use crate::{
    AppBinding, AppRecord, AppRunRecord, AppRunState, BindingRecord, CollectionRecord, CreateApp,
    CreateCollection, DeploymentRecord, DeploymentSummary, ErrorCode, Listed, Scope, UpdateApp,
};

/// Filter for an app's runs.
const RUN_STATE: Parameter = Parameter {
    name: "state",
    about: "Only runs in one of these states.",
    values: Values::AnyOf(&AppRunState::NAMES),
};
const RUN_BINDING: Parameter =
    Parameter { name: "binding", about: "Only runs of the binding with this name.", values: Values::Text };

/// Reasons for rejecting a bundle.
const BUNDLE: &[ErrorCode] = &[
    ErrorCode::NotAZip,
    ErrorCode::ZipMalformed,
    ErrorCode::ZipOverlap,
    ErrorCode::EncryptedEntry,
    ErrorCode::UnsupportedCompression,
    ErrorCode::CrcMismatch,
    ErrorCode::SizeMismatch,
    ErrorCode::BundleTooLarge,
    ErrorCode::ExpandedTooLarge,
    ErrorCode::TooManyFiles,
    ErrorCode::FileTooLarge,
    ErrorCode::PathTooDeep,
    ErrorCode::PathTooLong,
    ErrorCode::DirectoryTooLarge,
    ErrorCode::UnsafePath,
    ErrorCode::NameNotUtf8,
    ErrorCode::PathCollision,
    ErrorCode::PathNotNormalized,
    ErrorCode::Symlink,
    ErrorCode::SpecialFile,
    ErrorCode::ReservedPath,
    ErrorCode::IndexMissing,
    ErrorCode::SensitiveFile,
    ErrorCode::NestedArchive,
    ErrorCode::Executable,
    ErrorCode::NotUtf8,
    ErrorCode::HtmlParseLimit,
    ErrorCode::InlineEventHandler,
    ErrorCode::JavascriptUrl,
    ErrorCode::UnsupportedScriptType,
    ErrorCode::ExternalScript,
    ErrorCode::UnsupportedElement,
    ErrorCode::SvgScript,
    ErrorCode::CspTooLarge,
    ErrorCode::ManifestInvalid,
    ErrorCode::SchemaInvalid,
];

operations! {
    LIST = get("/api/apps", "list_apps", "Lists the apps of the workspace, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<AppRecord>))]);

    CREATE = post("/api/apps", "create_app", "Creates an app. Its host answers as if it did not exist until a release is published.")
        .needs(Scope::AppsWrite)
        .repeatable()
        .body(json!(CreateApp, examples::CREATE))
        .answers(&[Answer::new(201, json!(AppRecord, examples::APP))])
        .errors(&[ErrorCode::AliasTaken]);

    READ = get("/api/apps/{app}", "read_app", "Shows an app.")
        .needs(Scope::AppsRead)
        .answers(&[Answer::new(200, json!(AppRecord))])
        .errors(&[ErrorCode::AppNotFound]);

    UPDATE = patch(
        "/api/apps/{app}",
        "update_app",
        "Changes the name of an app or the access to it; absent members stay unchanged. `access` also needs `apps:publish`, and members \
         need the role admin or owner for it.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .body(json!(UpdateApp, examples::UPDATE))
    .answers(&[Answer::new(200, json!(AppRecord))])
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

    LIST_DEPLOYMENTS = get("/api/apps/{app}/deployments", "list_deployments", "Lists the deployments of an app, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<DeploymentSummary>))])
        .errors(&[ErrorCode::AppNotFound]);

    DEPLOY = post(
        "/api/apps/{app}/deployments",
        "create_deployment",
        "Uploads a bundle, a ZIP archive: as the body, or as the only part `bundle` of a `multipart/form-data` form. If it is accepted, it \
         becomes a deployment. Visitors receive nothing of it until it is published.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .body(binary!("application/zip"))
    .answers(&[Answer::new(201, json!(DeploymentRecord))])
    .shared_errors(BUNDLE)
    .errors(&[
        ErrorCode::AppNotFound,
        ErrorCode::BundlePartInvalid,
        ErrorCode::WorkflowPreflightFailed,
        ErrorCode::ValidationBusy,
        ErrorCode::WorkspaceFull,
    ]);

    READ_DEPLOYMENT = get("/api/apps/{app}/deployments/{deployment}", "read_deployment", "Shows a deployment with its files and the report of its check.")
        .needs(Scope::AppsRead)
        .answers(&[Answer::new(200, json!(DeploymentRecord, examples::DEPLOYMENT))])
        .errors(&[ErrorCode::AppNotFound, ErrorCode::DeploymentNotFound]);

    DELETE_DEPLOYMENT = delete(
        "/api/apps/{app}/deployments/{deployment}",
        "delete_deployment",
        "Deletes a deployment that was never published.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::AppNotFound, ErrorCode::DeploymentNotFound, ErrorCode::DeploymentReleased]);

    LIST_BINDINGS = get("/api/apps/{app}/bindings", "list_app_bindings", "Lists the bindings of an app, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<BindingRecord>))])
        .errors(&[ErrorCode::AppNotFound]);

    SET_BINDING = put(
        "/api/apps/{app}/bindings/{binding}",
        "set_app_binding",
        "Creates or replaces a binding, for deployments whose manifests declare none.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .body(json!(AppBinding, examples::BINDING))
    .answers(&[
        Answer::new(201, json!(BindingRecord)).when("the name is new"),
        Answer::new(200, json!(BindingRecord)).when("the binding was replaced"),
    ])
    .errors(&[ErrorCode::AppNotFound, ErrorCode::ManifestInvalid, ErrorCode::SchemaInvalid]);

    DELETE_BINDING = delete("/api/apps/{app}/bindings/{binding}", "delete_app_binding", "Deletes a binding.")
        .needs(Scope::AppsWrite)
        .repeatable()
        .answers(&[Answer::empty(204)])
        .errors(&[ErrorCode::AppNotFound, ErrorCode::BindingNotFound]);

    LIST_COLLECTIONS = get("/api/apps/{app}/collections", "list_app_collections", "Lists the collections of an app, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<CollectionRecord>))])
        .errors(&[ErrorCode::AppNotFound]);

    CREATE_COLLECTION = post(
        "/api/apps/{app}/collections",
        "create_app_collection",
        "Creates a collection, for deployments whose manifests declare none.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .body(json!(CreateCollection, examples::COLLECTION))
    .answers(&[Answer::new(201, json!(CollectionRecord))])
    .errors(&[
        ErrorCode::AppNotFound,
        ErrorCode::CollectionTaken,
        ErrorCode::ManifestInvalid,
        ErrorCode::SchemaInvalid,
    ]);

    DELETE_COLLECTION = delete(
        "/api/apps/{app}/collections/{collection}",
        "delete_app_collection",
        "Deletes a collection with its records. Another collection of its name begins without them.",
    )
    .needs(Scope::AppsWrite)
    .repeatable()
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::AppNotFound, ErrorCode::CollectionNotFound]);

    LIST_RUNS = get(
        "/api/apps/{app}/runs",
        "list_app_runs",
        "Lists the runs that pages of an app have started, newest first. With a filter a page may be shorter than `limit`, even \
         empty, and still have a next one.",
    )
    .needs(Scope::AppsRead)
    .query(&[LIMIT, CURSOR, RUN_STATE, RUN_BINDING])
    .answers(&[Answer::new(200, json!(Listed<AppRunRecord>, examples::RUNS))])
    .errors(&[ErrorCode::AppNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "alias": "refunds",
  "name": "Refunds",
  "access": "public"
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

    pub(super) const DEPLOYMENT: &str = r#"{
  "id": "0198c2f0-7a51-7cc3-9d41-2f1b6a7e0c35",
  "app_id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
  "size": 412,
  "expanded_size": 634,
  "file_count": 1,
  "available": true,
  "spa": false,
  "frame_ancestors": [],
  "wasm": false,
  "created_at": "2026-11-22T09:00:00.000000Z",
  "created_by": "user:0198c2e0-40bb-7c12-a0e5-1b8c7d6e5f4a",
  "files": [
    {
      "path": "index.html",
      "size": 634,
      "type": "text/html; charset=utf-8",
      "digest": "2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae"
    }
  ],
  "bindings": {
    "ask": {
      "workflow": "refunds",
      "version": 3,
      "access_mode": "anonymous",
      "input_schema": null,
      "output_projection": {
        "fields": [
          "answer"
        ]
      },
      "visitor_can_read_output": true,
      "limits": {
        "timeout_seconds": 60,
        "output_max_bytes": 262144,
        "max_concurrent": 100,
        "per_visitor_per_minute": 60
      }
    }
  },
  "collections": {},
  "permissions": null,
  "report": {
    "dropped": [],
    "notes": []
  }
}"#;

    pub(super) const BINDING: &str = r#"{
  "workflow": "refunds",
  "version": 3,
  "access_mode": "anonymous",
  "output_projection": {
    "fields": [
      "answer"
    ]
  },
  "visitor_can_read_output": true
}"#;

    pub(super) const COLLECTION: &str = r#"{
  "name": "favourites",
  "kind": "user",
  "capabilities": {
    "anonymous": [],
    "member": [
      "read",
      "create",
      "delete"
    ]
  }
}"#;

    pub(super) const RUNS: &str = r#"{
  "data": [
    {
      "id": "0198c310-2b40-7e11-8a52-6d5c4b3a2918",
      "handle_prefix": "run_q3VtZ0pX",
      "binding": "ask",
      "state": "failed",
      "release_id": "0198c300-7a51-7cc3-9d41-2f1b6a7e0c35",
      "visitor": "anonymous",
      "created_at": "2026-11-22T09:20:00.000000Z",
      "finished_at": "2026-11-22T09:20:01.250000Z",
      "error": {
        "code": "node.failed"
      }
    }
  ],
  "next_cursor": null
}"#;

    pub(super) const UPDATE: &str = r#"{
  "access": "members"
}"#;
}
