//! Releases of hosted apps, and what they may do, over HTTP.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    BindingAccess, BindingLimits, CollectionCapabilities, CollectionKind, CollectionVerb, OutputProjection,
    Timestamp,
};

/// A release as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseSummary {
    /// UUIDv7.
    pub id: String,
    /// Its app.
    pub app_id: String,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: String,
    /// The release that a rollback repeats; null for a publish.
    pub source_release_id: Option<String>,
    /// Whether visitors receive it.
    pub active: bool,
    /// What it may do, as a digest.
    pub permission_revision: String,
    /// Whether unknown paths of pages show the index.
    pub spa: bool,
    /// Origins that can show the app in a frame.
    pub frame_ancestors: Vec<String>,
    /// Whether its pages may compile WebAssembly.
    pub wasm: bool,
    /// When it was published.
    pub created_at: Timestamp,
    /// The caller who published it; null if the service does not authenticate callers.
    pub created_by: Option<String>,
}

/// A release: a deployment with everything that it runs and stores, frozen. It does not change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReleaseRecord {
    /// What lists show.
    #[serde(flatten)]
    pub summary: ReleaseSummary,
    /// The workflows that its pages can run, by name.
    pub bindings: BTreeMap<String, FrozenBinding>,
    /// The collections that its pages can use, by name.
    pub collections: BTreeMap<String, FrozenCollection>,
}

/// A binding as a release froze it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenBinding {
    /// The workflow.
    pub workflow_id: String,
    /// Its handle when the release was made.
    pub workflow_handle: String,
    /// The number of its version.
    pub version: i32,
    /// The id of its version.
    pub version_id: String,
    /// SHA-256 of the graph of the version, hexadecimal.
    pub digest: String,
    /// Configuration of the version.
    pub runnable_config: Option<Value>,
    /// Versions that the workflow runs as sub-workflows, in all depths.
    pub includes: Vec<FrozenInclude>,
    /// Who can run it.
    pub access_mode: BindingAccess,
    /// A JSON Schema of the input.
    pub input_schema: Option<Value>,
    /// What pages receive of the output.
    pub output_projection: OutputProjection,
    /// Whether pages receive output at all.
    pub visitor_can_read_output: bool,
    /// How much a run may take.
    pub limits: BindingLimits,
}

/// A version that a frozen binding runs as a sub-workflow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenInclude {
    /// The workflow.
    pub workflow_id: String,
    /// The number of its version.
    pub version: i32,
    /// The id of its version.
    pub version_id: String,
    /// SHA-256 of the graph of the version, hexadecimal.
    pub digest: String,
}

/// A collection as a release froze it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrozenCollection {
    /// The id of the collection, which a later one of the same name does not have.
    pub id: String,
    /// Whose the records are.
    pub kind: CollectionKind,
    /// Who can do what.
    pub capabilities: CollectionCapabilities,
    /// A JSON Schema of a record.
    pub schema: Option<Value>,
}

/// What a deployment may do if it is published now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionsRecord {
    /// SHA-256 of the RFC 8785 form of `permissions`, hexadecimal.
    pub permission_revision: String,
    /// Whether an administrator has acknowledged this revision for this app.
    pub acknowledged: bool,
    /// What it may do.
    pub permissions: Permissions,
    /// Names of the workflows, by id.
    pub workflows: BTreeMap<String, PermissionWorkflow>,
    /// What differs from the active release.
    pub changes: Vec<PermissionChange>,
}

/// What a release may do. Lists are sorted.
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

/// What a binding may do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingPermissions {
    /// The workflow.
    pub workflow_id: String,
    /// Its version.
    pub version: i32,
    /// Who can run it.
    pub access_mode: BindingAccess,
    /// What pages receive of the output.
    pub fields: Vec<String>,
    /// Whether pages receive output at all.
    pub visitor_can_read_output: bool,
    /// How much a run may take.
    pub limits: BindingLimits,
    /// Nodes and tools that act outside of the service.
    pub outbound: Vec<OutboundNode>,
    /// Credentials that its workflows name.
    pub credentials: Vec<String>,
    /// Collections that its workflows use.
    pub data: Vec<DataAccess>,
}

/// A node that acts outside of the service, or a tool of an agent that does.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutboundNode {
    /// The workflow.
    pub workflow_id: String,
    /// Its version.
    pub version: i32,
    /// The node.
    pub node: String,
    /// The type of the node or the tool.
    #[serde(rename = "type")]
    pub kind: String,
}

/// What the workflows of a binding do with a collection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DataAccess {
    /// The name of the collection.
    pub collection: String,
    /// What they do with its records.
    pub verbs: Vec<CollectionVerb>,
}

/// What visitors can do with a collection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CollectionPermissions {
    /// Whose the records are.
    pub kind: CollectionKind,
    /// Visitors without a sign-in.
    pub anonymous: Vec<CollectionVerb>,
    /// Members who are signed in.
    pub member: Vec<CollectionVerb>,
}

/// How people know a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionWorkflow {
    /// Its handle.
    pub handle: String,
    /// Its name.
    pub name: String,
}

/// A difference between the permissions of the active release and those of a deployment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PermissionChange {
    /// JSON pointer into `permissions`.
    pub path: String,
    /// What the active release has; null if it has nothing there.
    pub before: Value,
    /// What the deployment has; null if it has nothing there.
    pub after: Value,
}

/// `POST …/acknowledge`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AcknowledgePermissions {
    /// The revision that was read.
    pub permission_revision: String,
}

/// An acknowledgement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AcknowledgementRecord {
    /// What was acknowledged.
    pub permission_revision: String,
    /// When.
    pub acknowledged_at: Timestamp,
    /// By which caller; null if the service does not authenticate callers.
    pub acknowledged_by: Option<String>,
}

/// `POST …/rollback`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RollBack {
    /// The id of the release to repeat.
    pub release: String,
}
