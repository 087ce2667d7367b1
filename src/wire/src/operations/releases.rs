//! Hosted app permissions and releases.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, get, json, operations, post};
use crate::{
    AcknowledgePermissions, AcknowledgementRecord, ErrorCode, Listed, PermissionsRecord, ReleaseRecord,
    ReleaseSummary, RollBack, Scope,
};

operations! {
    PERMISSIONS = get(
        "/api/apps/{app}/deployments/{deployment}/permissions",
        "read_deployment_permissions",
        "Shows the permissions of a deployment if it is published now, and the differences from the active release.",
    )
    .needs(Scope::AppsRead)
    .answers(&[Answer::new(200, json!(PermissionsRecord, examples::PERMISSIONS))])
    .errors(&[
        ErrorCode::AppNotFound,
        ErrorCode::DeploymentNotFound,
        ErrorCode::ManifestInvalid,
        ErrorCode::SchemaInvalid,
        ErrorCode::WorkflowPreflightFailed,
        ErrorCode::ValidationBusy,
    ]);

    ACKNOWLEDGE = post(
        "/api/apps/{app}/deployments/{deployment}/acknowledge",
        "acknowledge_permissions",
        "Acknowledges the permissions of a deployment, by the revision that was read. Members need the role admin or owner. The first \
         acknowledgement of a revision counts.",
    )
    .needs(Scope::AppsPublish)
    .repeatable()
    .body(json!(AcknowledgePermissions, examples::ACKNOWLEDGE))
    .answers(&[Answer::new(200, json!(AcknowledgementRecord, examples::ACKNOWLEDGEMENT))])
    .errors(&[
        ErrorCode::AppNotFound,
        ErrorCode::DeploymentNotFound,
        ErrorCode::PermissionRevisionStale,
        ErrorCode::ManifestInvalid,
        ErrorCode::SchemaInvalid,
        ErrorCode::WorkflowPreflightFailed,
        ErrorCode::ValidationBusy,
    ]);

    PUBLISH = post(
        "/api/apps/{app}/deployments/{deployment}/publish",
        "publish_deployment",
        "Checks the workflows again, freezes everything that the deployment runs and stores in a release, and serves this release to \
         visitors. Members need the role admin or owner.",
    )
    .needs(Scope::AppsPublish)
    .repeatable()
    .answers(&[Answer::new(201, json!(ReleaseRecord, examples::RELEASE))])
    .errors(&[
        ErrorCode::AppNotFound,
        ErrorCode::DeploymentNotFound,
        ErrorCode::DeploymentStale,
        ErrorCode::PermissionAckRequired,
        ErrorCode::PermissionRevisionStale,
        ErrorCode::CollectionTaken,
        ErrorCode::ManifestInvalid,
        ErrorCode::SchemaInvalid,
        ErrorCode::WorkflowPreflightFailed,
        ErrorCode::ValidationBusy,
    ]);

    ROLL_BACK = post(
        "/api/apps/{app}/rollback",
        "roll_back_app",
        "Repeats an earlier release as a new one, with all that it froze: nothing is checked again. Members need the role admin or \
         owner.",
    )
    .needs(Scope::AppsPublish)
    .repeatable()
    .body(json!(RollBack, examples::ROLL_BACK))
    .answers(&[Answer::new(201, json!(ReleaseRecord))])
    .errors(&[ErrorCode::AppNotFound, ErrorCode::ReleaseNotFound, ErrorCode::DeploymentStale]);

    LIST = get("/api/apps/{app}/releases", "list_releases", "Lists the releases of an app, newest first.")
        .needs(Scope::AppsRead)
        .query(&[LIMIT, CURSOR])
        .answers(&[Answer::new(200, json!(Listed<ReleaseSummary>))])
        .errors(&[ErrorCode::AppNotFound]);

    READ = get("/api/apps/{app}/releases/{release}", "read_release", "Shows a release with what it froze.")
        .needs(Scope::AppsRead)
        .answers(&[Answer::new(200, json!(ReleaseRecord))])
        .errors(&[ErrorCode::AppNotFound, ErrorCode::ReleaseNotFound]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const PERMISSIONS: &str = r#"{
  "permission_revision": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
  "acknowledged": false,
  "permissions": {
    "bindings": {
      "ask": {
        "workflow_id": "0198c2e0-60aa-7d03-b1f6-0c9d8e7f6a5b",
        "version": 3,
        "access_mode": "anonymous",
        "fields": [
          "answer"
        ],
        "visitor_can_read_output": true,
        "limits": {
          "timeout_seconds": 60,
          "output_max_bytes": 262144,
          "max_concurrent": 100,
          "per_visitor_per_minute": 60
        },
        "outbound": [
          {
            "workflow_id": "0198c2e0-60aa-7d03-b1f6-0c9d8e7f6a5b",
            "version": 3,
            "node": "look_up",
            "type": "http_request"
          }
        ],
        "credentials": [
          "shop"
        ],
        "data": []
      }
    },
    "collections": {},
    "frame_ancestors": [],
    "wasm": false
  },
  "workflows": {
    "0198c2e0-60aa-7d03-b1f6-0c9d8e7f6a5b": {
      "handle": "refunds",
      "name": "Refunds"
    }
  },
  "changes": [
    {
      "path": "/bindings/ask/version",
      "before": 2,
      "after": 3
    }
  ]
}"#;

    pub(super) const ACKNOWLEDGE: &str = r#"{
  "permission_revision": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef"
}"#;

    pub(super) const ACKNOWLEDGEMENT: &str = r#"{
  "permission_revision": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
  "acknowledged_at": "2026-11-22T09:05:00.000000Z",
  "acknowledged_by": "user:0198c2e0-40bb-7c12-a0e5-1b8c7d6e5f4a"
}"#;

    pub(super) const RELEASE: &str = r#"{
  "id": "0198c300-7a51-7cc3-9d41-2f1b6a7e0c35",
  "app_id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "number": 2,
  "deployment_id": "0198c2f0-7a51-7cc3-9d41-2f1b6a7e0c35",
  "source_release_id": null,
  "active": true,
  "permission_revision": "5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef",
  "spa": false,
  "frame_ancestors": [],
  "wasm": false,
  "created_at": "2026-11-22T09:06:00.000000Z",
  "created_by": "user:0198c2e0-40bb-7c12-a0e5-1b8c7d6e5f4a",
  "bindings": {
    "ask": {
      "workflow_id": "0198c2e0-60aa-7d03-b1f6-0c9d8e7f6a5b",
      "workflow_handle": "refunds",
      "version": 3,
      "version_id": "0198c2e0-61bb-7d03-b1f6-0c9d8e7f6a5b",
      "digest": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
      "runnable_config": null,
      "includes": [],
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
  "collections": {}
}"#;

    pub(super) const ROLL_BACK: &str = r#"{
  "release": "0198c2f8-7a51-7cc3-9d41-2f1b6a7e0c35"
}"#;
}
