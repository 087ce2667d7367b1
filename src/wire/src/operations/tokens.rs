//! Service tokens and the audit trail.

use super::parameters::{CURSOR, LIMIT};
use crate::operation::{Answer, Parameter, Values, delete, get, json, operations, post};
use crate::{
    AuditRecord, CreateServiceToken, CreatedServiceToken, ErrorCode, IssuedServiceToken, Listed,
    RevokeServiceToken, RotateServiceToken, Scope, ServiceTokenRecord,
};

operations! {
    CREATE = post(
        "/api/admin/service-tokens",
        "create_service_token",
        "Creates a service token; the response has its secret, which is never shown again. The first token of an open service turns \
         authentication on: the response says so in `access_change`, with a token of every scope that was created first.",
    )
    .needs(Scope::TokensWrite)
    .repeatable()
    .body(json!(CreateServiceToken, examples::CREATE))
    .answers(&[Answer::new(201, json!(CreatedServiceToken, examples::CREATED))]);

    LIST = get("/api/admin/service-tokens", "list_service_tokens", "Lists the service tokens, the newest first.")
        .needs_anywhere(Scope::TokensRead)
        .query(&[
            LIMIT,
            CURSOR,
            Parameter {
                name: "status",
                about: "Only tokens in this state.",
                values: Values::OneOf(&["active", "revoked", "expired"]),
            },
        ])
        .answers(&[Answer::new(200, json!(Listed<ServiceTokenRecord>))]);

    READ = get("/api/admin/service-tokens/{id}", "read_service_token", "Shows a service token.")
        .needs(Scope::TokensRead)
        .answers(&[Answer::new(200, json!(ServiceTokenRecord))])
        .errors(&[ErrorCode::ServiceTokenNotFound]);

    ROTATE = post(
        "/api/admin/service-tokens/{id}/rotate",
        "rotate_service_token",
        "Replaces the secret of a service token; the old one stays valid for `overlap_seconds` (0 to 604800).",
    )
    .needs(Scope::TokensWrite)
    .repeatable()
    .optional_body(json!(RotateServiceToken, examples::ROTATE))
    .answers(&[Answer::new(200, json!(IssuedServiceToken))])
    .errors(&[ErrorCode::ServiceTokenNotFound, ErrorCode::ServiceTokenNotActive]);

    REVOKE = post("/api/admin/service-tokens/{id}/revoke", "revoke_service_token", "Revokes a service token.")
        .needs(Scope::TokensWrite)
        .repeatable()
        .body(json!(RevokeServiceToken, examples::REVOKE))
        .answers(&[Answer::new(200, json!(ServiceTokenRecord))])
        .errors(&[ErrorCode::ServiceTokenNotFound]);

    DELETE = delete(
        "/api/admin/service-tokens/{id}",
        "delete_service_token",
        "Revokes a service token like `revoke`, without a record in the response.",
    )
    .needs(Scope::TokensWrite)
    .repeatable()
    .optional_body(json!(RevokeServiceToken, examples::REVOKE))
    .answers(&[Answer::empty(204)])
    .errors(&[ErrorCode::ServiceTokenNotFound]);

    AUDIT = get("/api/admin/audit", "list_audit_records", "The audit trail, the newest first.")
        .needs_anywhere(Scope::TokensRead)
        .query(&[
            LIMIT,
            CURSOR,
            Parameter { name: "action", about: "Only this action.", values: Values::Text },
            Parameter { name: "actor", about: "Only this actor, by id.", values: Values::Text },
            Parameter {
                name: "outcome",
                about: "Only this outcome.",
                values: Values::OneOf(&["success", "denied"]),
            },
        ])
        .answers(&[Answer::new(200, json!(Listed<AuditRecord>, examples::AUDIT))]);
}

#[cfg(feature = "schema")]
mod examples {
    pub(super) const CREATE: &str = r#"{
  "name": "nightly report",
  "scopes": [
    "workflows:read",
    "workflows:execute"
  ],
  "workspaces": [
    "support"
  ],
  "expires_in": 2592000
}"#;

    pub(super) const CREATED: &str = r#"{
  "secret": "svc_3x9…",
  "id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b",
  "name": "nightly report",
  "scopes": [
    "workflows:read",
    "workflows:execute"
  ],
  "workspaces": [
    "support"
  ],
  "issued": "2026-11-22T09:00:00.000000Z",
  "expires": "2026-12-22T09:00:00.000000Z",
  "status": "active",
  "created_by": "bootstrap:bootstrap",
  "last_used": null,
  "revoked": null,
  "revoked_reason": null,
  "access_change": null
}"#;

    pub(super) const ROTATE: &str = r#"{
  "overlap_seconds": 3600
}"#;

    pub(super) const REVOKE: &str = r#"{
  "reason": "The laptop was lost."
}"#;

    pub(super) const AUDIT: &str = r#"{
  "data": [
    {
      "id": "0198c2e1-07b4-7c11-9a52-3f6d1e0b8a47",
      "at": "2026-11-22T09:00:00.000000Z",
      "actor": {
        "kind": "bootstrap",
        "id": null
      },
      "action": "service_token.created",
      "target": {
        "kind": "service_token",
        "id": "0198c2e0-51aa-7d03-b1f6-0c9d8e7f6a5b"
      },
      "workspace_id": null,
      "outcome": "success",
      "reason": null,
      "address": "127.0.0.1",
      "request_id": "9f2c4e6a8b0d1f3a5c7e9b1d3f5a7c9e"
    }
  ],
  "next_cursor": null
}"#;
}
