//! Service tokens and the audit trail over HTTP. Source: `interface.md`, "Service token".

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/admin/service-tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateServiceToken {
    /// A label with at most 200 characters; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Scopes that it grants; the creator must have all of them.
    pub scopes: Vec<String>,
    /// Ids or slugs of its workspaces; empty: all.
    #[serde(default)]
    pub workspaces: Vec<String>,
    /// Lifetime in seconds, at least 1; unset: unlimited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<i64>,
}

/// A service token, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ServiceTokenRecord {
    /// UUIDv7.
    pub id: String,
    /// A label.
    pub name: Option<String>,
    /// Scopes that it grants.
    pub scopes: Vec<String>,
    /// Ids or slugs of its workspaces; empty: all.
    pub workspaces: Vec<String>,
    /// Creation time.
    pub issued: Timestamp,
    /// Expiry.
    pub expires: Option<Timestamp>,
    /// `active`, `revoked` or `expired`.
    pub status: String,
    /// The creator, as `kind:id`.
    pub created_by: String,
    /// Last use, to the minute.
    pub last_used: Option<Timestamp>,
    /// Revocation time.
    pub revoked: Option<Timestamp>,
    /// Reason for the revocation.
    pub revoked_reason: Option<String>,
}

/// A service token with its secret, which is never shown again.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedServiceToken {
    /// `svc_…`, sent after `Bearer`.
    pub secret: String,
    /// The token.
    #[serde(flatten)]
    pub token: ServiceTokenRecord,
}

/// The answer to `POST /api/admin/service-tokens`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CreatedServiceToken {
    /// The token with its secret.
    #[serde(flatten)]
    pub issued: IssuedServiceToken,
    /// The change in the service's access, if this was its first credential; null otherwise.
    #[serde(default)]
    pub access_change: Option<AccessChange>,
}

/// The first service token of an open service turns authentication on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessChange {
    /// A message for people.
    pub message: String,
    /// A token with every scope, created first so that its creator keeps access; null if the requested token has every
    /// scope in all workspaces and does not expire.
    pub admin_token: Option<IssuedServiceToken>,
}

/// `POST /api/admin/service-tokens/{id}/rotate`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RotateServiceToken {
    /// Seconds for which the previous secrets stay valid, 0 (default) to 604800.
    #[serde(default)]
    pub overlap_seconds: i64,
}

/// `POST /api/admin/service-tokens/{id}/revoke`, and the optional body of its `DELETE`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeServiceToken {
    /// The reason; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// An audited action's actor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditActor {
    /// `anonymous`, `bootstrap`, `service_token`, `jwt`, `user` or `system`.
    pub kind: String,
    /// Distinguishes actors of the same kind.
    pub id: Option<String>,
}

/// An audited action's target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditObject {
    /// `service_token`, `workflow`, `workspace`, `route`, …
    pub kind: String,
    /// Its id; for a route, its method and pattern.
    pub id: String,
}

/// An audit trail entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditRecord {
    /// UUIDv7.
    pub id: String,
    /// Action time.
    pub at: Timestamp,
    /// The actor.
    pub actor: AuditActor,
    /// The action, as `noun.verb`.
    pub action: String,
    /// The target.
    pub target: Option<AuditObject>,
    /// The action's workspace.
    pub workspace_id: Option<String>,
    /// `success` or `denied`.
    pub outcome: String,
    /// The reason.
    pub reason: Option<String>,
    /// The client's address.
    pub address: Option<String>,
    /// The request's `X-Request-Id`.
    pub request_id: Option<String>,
}
