//! Hosted app deployments over HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PermissionsRecord, Timestamp};

/// Maximum bindings per app and per manifest.
pub const MAX_BINDINGS: usize = 100;
/// Maximum collections per app and per manifest.
pub const MAX_COLLECTIONS: usize = 32;

/// A deployment in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentSummary {
    /// UUIDv7.
    pub id: String,
    /// Its app.
    pub app_id: String,
    /// SHA-256 of the archive, hexadecimal.
    pub digest: String,
    /// Archive size in bytes.
    pub size: i64,
    /// Total size of its files in bytes.
    pub expanded_size: i64,
    /// Number of files.
    pub file_count: i32,
    /// Whether its files are stored: those of an app's newest 50 deployments and of recent releases are.
    pub available: bool,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// Origins that can show the app in a frame.
    pub frame_ancestors: Vec<String>,
    /// Whether it has a WebAssembly file.
    pub wasm: bool,
    /// Upload time.
    pub created_at: Timestamp,
    /// The caller who uploaded it; null if the service does not authenticate callers.
    pub created_by: Option<String>,
}

/// A deployment: an accepted bundle. Immutable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentRecord {
    /// The summary in lists.
    #[serde(flatten)]
    pub summary: DeploymentSummary,
    /// Its files by path; empty after their deletion.
    pub files: Vec<DeploymentFileRecord>,
    /// The workflows that its pages can run, by name: from the manifest, or from the app at the upload if the manifest
    /// has none.
    pub bindings: BTreeMap<String, AppBinding>,
    /// The collections that its pages can use, by name; the same origin as for bindings.
    pub collections: BTreeMap<String, AppCollection>,
    /// Permissions if it is published now; null: it cannot be published as it is, and `GET …/permissions` gives the
    /// reason.
    pub permissions: Option<PermissionsRecord>,
    /// The check's remarks.
    pub report: DeploymentReport,
}

/// A deployment file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentFileRecord {
    /// The path from the root.
    pub path: String,
    /// Bytes.
    pub size: i64,
    /// The content type to serve it with.
    #[serde(rename = "type")]
    pub media_type: String,
    /// SHA-256 of the content, hexadecimal.
    pub digest: String,
}

/// Remarks of a check that accepted a bundle.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentReport {
    /// Files of desktop systems that are not served.
    pub dropped: Vec<String>,
    /// Remarks about the files.
    pub notes: Vec<DeploymentNote>,
}

/// A remark that does not reject a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentNote {
    /// `external_url`, `large_html` or `wasm`.
    pub code: String,
    /// The file.
    pub path: String,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// The remark.
    pub detail: String,
}

/// A workflow that app pages can run under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppBinding {
    /// Handle or id of a workflow in the app's workspace.
    pub workflow: String,
    /// The version of the workflow.
    pub version: u32,
    /// Visitors who can run it.
    pub access_mode: BindingAccess,
    /// A JSON Schema for the input.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// The output fields that pages receive.
    #[serde(default)]
    pub output_projection: OutputProjection,
    /// Whether pages receive any output.
    #[serde(default)]
    pub visitor_can_read_output: bool,
    /// Limits per run.
    #[serde(default)]
    pub limits: BindingLimits,
}

/// Visitors who can run a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BindingAccess {
    /// Every visitor.
    Anonymous,
    /// Signed-in members.
    Authenticated,
}

/// A run's output fields that pages receive.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutputProjection {
    /// Names of the output's top-level members.
    pub fields: Vec<String>,
}

/// Limits for a binding's runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BindingLimits {
    /// Timeout of a run in seconds: 1 to 3,600.
    pub timeout_seconds: u32,
    /// Maximum bytes of the output that pages receive: 1 to 1,048,576.
    pub output_max_bytes: u32,
    /// Maximum unfinished runs, all visitors together: 1 to 10,000.
    pub max_concurrent: u32,
    /// Maximum runs per visitor and minute: 1 to 1,000,000.
    pub per_visitor_per_minute: u32,
}

impl Default for BindingLimits {
    fn default() -> Self {
        Self {
            timeout_seconds: 60,
            output_max_bytes: 262_144,
            max_concurrent: 100,
            per_visitor_per_minute: 60,
        }
    }
}

/// Records that app pages read and write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppCollection {
    /// Record ownership.
    pub kind: CollectionKind,
    /// Allowed operations.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema for a record.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// Record ownership in a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CollectionKind {
    /// All visitors see the same records.
    Shared,
    /// Each member sees their own records.
    User,
}

impl CollectionKind {
    /// `shared` or `user`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::User => "user",
        }
    }

    /// Parses a kind.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Shared, Self::User].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Allowed operations on a collection's records.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CollectionCapabilities {
    /// Operations for visitors without a sign-in.
    pub anonymous: Vec<CollectionVerb>,
    /// Operations for signed-in members.
    pub member: Vec<CollectionVerb>,
}

/// An operation on records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum CollectionVerb {
    /// Read records.
    Read,
    /// Create a record.
    Create,
    /// Change a record.
    Update,
    /// Delete a record.
    Delete,
}

impl CollectionVerb {
    /// The name in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create => "create",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// A binding for deployments whose manifests declare none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingRecord {
    /// Its name.
    pub name: String,
    /// The workflow that it runs.
    pub binding: AppBinding,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last replacement.
    pub updated_at: Timestamp,
}

/// `POST /api/apps/{app}/collections`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateCollection {
    /// 1 to 64 characters of a-z, 0-9, `-` and `_`; unique among the app's collections.
    pub name: String,
    /// Record ownership.
    pub kind: CollectionKind,
    /// Allowed operations.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema for a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A collection for deployments whose manifests declare none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectionRecord {
    /// UUIDv7; a later collection with the same name has a different one.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Record ownership.
    pub kind: CollectionKind,
    /// Allowed operations.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema for a record.
    pub schema: Option<Value>,
    /// Creation time.
    pub created_at: Timestamp,
}
