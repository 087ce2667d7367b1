//! Hosted app releases and their permissions, over HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    BindingAccess, BindingLimits, CollectionCapabilities, CollectionKind, CollectionVerb, OutputProjection,
    Timestamp,
};

/// A release in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseSummary {
    /// UUIDv7.
    pub id: String,
    /// Its app.
    pub app_id: String,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment with its files.
    pub deployment_id: String,
    /// The release that a rollback repeats; null for a publish.
    pub source_release_id: Option<String>,
    /// Whether visitors receive it.
    pub active: bool,
    /// Its permission digest.
    pub permission_revision: String,
    /// Whether unknown page paths show the index.
    pub spa: bool,
    /// Origins that can show the app in a frame.
    pub frame_ancestors: Vec<String>,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// Publication time.
    pub created_at: Timestamp,
    /// The caller who published it; null if the service does not authenticate callers.
    pub created_by: Option<String>,
}

/// A release: a deployment with everything that it runs and stores, frozen. Immutable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseRecord {
    /// The summary in lists.
    #[serde(flatten)]
    pub summary: ReleaseSummary,
    /// The workflows that its pages can run, by name.
    pub bindings: BTreeMap<String, FrozenBinding>,
    /// The collections that its pages can use, by name.
    pub collections: BTreeMap<String, FrozenCollection>,
}

/// A binding frozen in a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenBinding {
    /// The workflow.
    pub workflow_id: String,
    /// The workflow's handle when the release was made.
    pub workflow_handle: String,
    /// The version's number.
    pub version: i32,
    /// The version's id.
    pub version_id: String,
    /// The version graph's SHA-256, hexadecimal.
    pub digest: String,
    /// The version's configuration.
    pub runnable_config: Option<Value>,
    /// Versions that the workflow runs as sub-workflows, at every depth.
    pub includes: Vec<FrozenInclude>,
    /// Visitors who can run it.
    pub access_mode: BindingAccess,
    /// A JSON Schema for the input.
    pub input_schema: Option<Value>,
    /// The output fields that pages receive.
    pub output_projection: OutputProjection,
    /// Whether pages receive any output.
    pub visitor_can_read_output: bool,
    /// Limits per run.
    pub limits: BindingLimits,
}

/// A version that a frozen binding runs as a sub-workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenInclude {
    /// The workflow.
    pub workflow_id: String,
    /// The version's number.
    pub version: i32,
    /// The version's id.
    pub version_id: String,
    /// The version graph's SHA-256, hexadecimal.
    pub digest: String,
}

/// A collection frozen in a release.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenCollection {
    /// The collection's id; a later collection with the same name has a different one.
    pub id: String,
    /// Record ownership.
    pub kind: CollectionKind,
    /// Allowed operations.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema for a record.
    pub schema: Option<Value>,
}

/// A deployment's permissions if it is published now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionsRecord {
    /// SHA-256 of `permissions` in RFC 8785 form, hexadecimal.
    pub permission_revision: String,
    /// Whether an administrator has acknowledged this revision for this app.
    pub acknowledged: bool,
    /// The permissions.
    pub permissions: Permissions,
    /// Workflow names, by id.
    pub workflows: BTreeMap<String, PermissionWorkflow>,
    /// Differences from the active release.
    pub changes: Vec<PermissionChange>,
}

/// A release's permissions. Lists are sorted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Permissions {
    /// Workflows that pages can run, by name.
    pub bindings: BTreeMap<String, BindingPermissions>,
    /// Collections that pages can use, by name.
    pub collections: BTreeMap<String, CollectionPermissions>,
    /// Origins that can show the app in a frame.
    pub frame_ancestors: Vec<String>,
    /// Whether pages may compile WebAssembly.
    pub wasm: bool,
}

/// A binding's permissions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingPermissions {
    /// The workflow.
    pub workflow_id: String,
    /// Its version.
    pub version: i32,
    /// Visitors who can run it.
    pub access_mode: BindingAccess,
    /// The output fields that pages receive.
    pub fields: Vec<String>,
    /// Whether pages receive any output.
    pub visitor_can_read_output: bool,
    /// Limits per run.
    pub limits: BindingLimits,
    /// Nodes and tools that act outside the service.
    pub outbound: Vec<OutboundNode>,
    /// Credentials named in its workflows.
    pub credentials: Vec<String>,
    /// Collections used in its workflows.
    pub data: Vec<DataAccess>,
}

/// A node, or an agent's tool, that acts outside the service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutboundNode {
    /// The workflow.
    pub workflow_id: String,
    /// Its version.
    pub version: i32,
    /// The node.
    pub node: String,
    /// The node's or tool's type.
    #[serde(rename = "type")]
    pub kind: String,
}

/// The access of a binding's workflows to a collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataAccess {
    /// The collection's name.
    pub collection: String,
    /// Their operations on its records.
    pub verbs: Vec<CollectionVerb>,
}

/// Visitors' operations on a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectionPermissions {
    /// Record ownership.
    pub kind: CollectionKind,
    /// Operations for visitors without a sign-in.
    pub anonymous: Vec<CollectionVerb>,
    /// Operations for signed-in members.
    pub member: Vec<CollectionVerb>,
}

/// A workflow's handle and name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionWorkflow {
    /// Its handle.
    pub handle: String,
    /// Its name.
    pub name: String,
}

/// A difference between the active release's permissions and a deployment's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionChange {
    /// JSON pointer into `permissions`.
    pub path: String,
    /// The active release's value; null if it has none.
    pub before: Value,
    /// The deployment's value; null if it has none.
    pub after: Value,
}

/// `POST …/acknowledge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcknowledgePermissions {
    /// The revision that the caller has read.
    pub permission_revision: String,
}

/// An acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcknowledgementRecord {
    /// The acknowledged revision.
    pub permission_revision: String,
    /// Acknowledgement time.
    pub acknowledged_at: Timestamp,
    /// The caller; null if the service does not authenticate callers.
    pub acknowledged_by: Option<String>,
}

/// `POST …/rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// Id of the release to repeat.
    pub release: String,
}
