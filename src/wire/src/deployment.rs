//! Deployments of hosted apps over HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{PermissionsRecord, Timestamp};

/// Bindings that an app, or a manifest, can have.
pub const MAX_BINDINGS: usize = 100;
/// Collections that an app, or a manifest, can have.
pub const MAX_COLLECTIONS: usize = 32;

/// A deployment as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentSummary {
    /// UUIDv7.
    pub id: String,
    /// Its app.
    pub app_id: String,
    /// SHA-256 of the archive, hexadecimal.
    pub digest: String,
    /// Bytes of the archive.
    pub size: i64,
    /// Bytes of its files.
    pub expanded_size: i64,
    /// Number of its files.
    pub file_count: i32,
    /// Whether its files are kept: those of the newest 50 deployments of an app are, and those that recent releases serve.
    pub available: bool,
    /// Whether unknown paths of pages show the index.
    pub spa: bool,
    /// Origins that can show the app in a frame.
    pub frame_ancestors: Vec<String>,
    /// Whether a file is WebAssembly.
    pub wasm: bool,
    /// When it was uploaded.
    pub created_at: Timestamp,
    /// The caller who uploaded it; null if the service does not authenticate callers.
    pub created_by: Option<String>,
}

/// A deployment: a bundle that was accepted. It does not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentRecord {
    /// What lists show.
    #[serde(flatten)]
    pub summary: DeploymentSummary,
    /// Its files by path; empty after they were deleted.
    pub files: Vec<DeploymentFileRecord>,
    /// The workflows that its pages can run, by name: those of the manifest; without one those of the app at the upload.
    pub bindings: BTreeMap<String, AppBinding>,
    /// The collections that its pages can use, by name: as for bindings.
    pub collections: BTreeMap<String, AppCollection>,
    /// What it may do if it is published now; null: it cannot be published as it is, and `GET …/permissions` says why.
    pub permissions: Option<PermissionsRecord>,
    /// Remarks of the check.
    pub report: DeploymentReport,
}

/// A file of a deployment.
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
    /// What to expect.
    pub notes: Vec<DeploymentNote>,
}

/// A remark that does not refuse a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DeploymentNote {
    /// `external_url`, `large_html` or `wasm`.
    pub code: String,
    /// The file.
    pub path: String,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// What to expect.
    pub detail: String,
}

/// A workflow that the pages of an app can run under a name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppBinding {
    /// Handle or id of the workflow, in the app's workspace.
    pub workflow: String,
    /// The version of the workflow.
    pub version: u32,
    /// Who can run it.
    pub access_mode: BindingAccess,
    /// A JSON Schema of the input.
    #[serde(default)]
    pub input_schema: Option<Value>,
    /// What pages receive of the output.
    #[serde(default)]
    pub output_projection: OutputProjection,
    /// Whether pages receive output at all.
    #[serde(default)]
    pub visitor_can_read_output: bool,
    /// How much a run may take.
    #[serde(default)]
    pub limits: BindingLimits,
}

/// Who can run a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BindingAccess {
    /// Every visitor.
    Anonymous,
    /// Members who are signed in.
    Authenticated,
}

/// What pages receive of the output of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct OutputProjection {
    /// Names of its top-level members.
    pub fields: Vec<String>,
}

/// How much the runs of a binding may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BindingLimits {
    /// Seconds of a run: 1 to 3,600.
    pub timeout_seconds: u32,
    /// Bytes of the output that pages receive: 1 to 1,048,576.
    pub output_max_bytes: u32,
    /// Unfinished runs of all visitors: 1 to 10,000.
    pub max_concurrent: u32,
    /// Runs that one visitor starts in a minute: 1 to 1,000,000.
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

/// Records that the pages of an app read and write.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AppCollection {
    /// Whose the records are.
    pub kind: CollectionKind,
    /// Who can do what.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema of a record.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// Whose the records of a collection are.
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

    /// The kind with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Shared, Self::User].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// Who can do what with the records of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CollectionCapabilities {
    /// Visitors without a sign-in.
    pub anonymous: Vec<CollectionVerb>,
    /// Members who are signed in.
    pub member: Vec<CollectionVerb>,
}

/// What can be done with a record.
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
    /// As in JSON.
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

/// A binding that applies to deployments whose manifests declare none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingRecord {
    /// Its name.
    pub name: String,
    /// What it runs.
    pub binding: AppBinding,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it was last replaced.
    pub updated_at: Timestamp,
}

/// `POST /api/apps/{app}/collections`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateCollection {
    /// 1 to 64 characters of a-z, 0-9, `-` and `_`; unique among the collections of the app.
    pub name: String,
    /// Whose the records are.
    pub kind: CollectionKind,
    /// Who can do what.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema of a record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// A collection that applies to deployments whose manifests declare none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectionRecord {
    /// UUIDv7; another collection of the same name has another one.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whose the records are.
    pub kind: CollectionKind,
    /// Who can do what.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema of a record.
    pub schema: Option<Value>,
    /// When it was created.
    pub created_at: Timestamp,
}
