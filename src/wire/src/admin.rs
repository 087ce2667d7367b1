//! Service tokens and the audit trail over HTTP. Source: `interface.md`, "Service token".

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/admin/service-tokens`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateServiceToken {
    /// A label of at most 200 characters; need not be unique.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What it grants; none that the creator lacks.
    pub scopes: Vec<String>,
    /// Ids or slugs of the workspaces it is good for; none means all.
    #[serde(default)]
    pub workspaces: Vec<String>,
    /// Seconds from now until it expires, at least 1; unset means never.
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
    /// What it grants.
    pub scopes: Vec<String>,
    /// Ids or slugs of the workspaces it is good for; none means all.
    pub workspaces: Vec<String>,
    /// When it was made.
    pub issued: Timestamp,
    /// When it expires.
    pub expires: Option<Timestamp>,
    /// `active`, `revoked` or `expired`.
    pub status: String,
    /// Who made it, as `kind:id`.
    pub created_by: String,
    /// When it was last used, to the minute.
    pub last_used: Option<Timestamp>,
    /// When it was revoked.
    pub revoked: Option<Timestamp>,
    /// Why it was revoked.
    pub revoked_reason: Option<String>,
}

/// A service token with its secret, which is shown this once.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct IssuedServiceToken {
    /// `svc_…`: what goes behind `Bearer`.
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
    /// The change of the service's access, if this was its first credential; null otherwise.
    #[serde(default)]
    pub access_change: Option<AccessChange>,
}

/// The first service token of an open service turns authentication on.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AccessChange {
    /// For people.
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
    /// Seconds for which the secrets before this one stay good, 0 (unless given) to 604800.
    #[serde(default)]
    pub overlap_seconds: i64,
}

/// `POST /api/admin/service-tokens/{id}/revoke`, and the optional body of its `DELETE`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RevokeServiceToken {
    /// Why; at most 500 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditActor {
    /// `anonymous`, `bootstrap`, `service_token`, `jwt`, `user` or `system`.
    pub kind: String,
    /// What tells one of the kind from others.
    pub id: Option<String>,
}

/// What something was done to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditObject {
    /// `service_token`, `workflow`, `workspace`, `route`, …
    pub kind: String,
    /// Its id; of a route its method and pattern.
    pub id: String,
}

/// A row of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AuditRecord {
    /// UUIDv7.
    pub id: String,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: AuditActor,
    /// What, as `noun.verb`.
    pub action: String,
    /// To what.
    pub target: Option<AuditObject>,
    /// In which workspace.
    pub workspace_id: Option<String>,
    /// `success` or `denied`.
    pub outcome: String,
    /// Why.
    pub reason: Option<String>,
    /// The client's address.
    pub address: Option<String>,
    /// The request, as `X-Request-Id` named it.
    pub request_id: Option<String>,
}
