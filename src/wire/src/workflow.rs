//! Workflows and versions over HTTP. Unset optional fields are `null`; unknown request fields are rejected.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ChatSettings, FieldError, PublicChat, Readiness, Timestamp, UpdateChatSettings, VersionGate};

/// `POST /api/workflows`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkflow {
    /// Display name; 1 to 200 characters.
    pub name: String,
    /// `^[a-z0-9]+(?:-[a-z0-9]+)*$`, at most 64, not a UUID; derived from the name if absent.
    #[serde(default)]
    pub handle: Option<String>,
    /// At most 4,000 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// At most 32 tags with 64 characters each.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// `PUT /api/workflows/{ref}`: absent members stay unchanged.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkflow {
    /// Display name; 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As in a new workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// At most 4,000 characters; null removes it.
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// At most 32 tags with 64 characters each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The chat settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<UpdateChatSettings>,
    /// Maximum concurrent runs, others are queued; null: unlimited.
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs: Option<Option<i32>>,
}

/// Distinguishes null from absent.
pub(crate) fn stated<'de, D: serde::Deserializer<'de>, T: Deserialize<'de>>(
    member: D,
) -> Result<Option<Option<T>>, D::Error> {
    Option::deserialize(member).map(Some)
}

/// A workflow's record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowRecord {
    /// UUIDv7.
    pub id: String,
    /// Unique within its workspace.
    pub handle: String,
    /// Display name.
    pub name: String,
    /// A description.
    pub description: Option<String>,
    /// Tags for finding it.
    pub tags: Vec<String>,
    /// Its workspace.
    pub workspace_id: String,
    /// True for a published workflow.
    pub is_public: bool,
    /// Whether the published chat requires a login.
    pub require_login: bool,
    /// Publication time.
    pub published_at: Option<Timestamp>,
    /// The publisher.
    pub published_by: Option<String>,
    /// The page to share, while published.
    pub share_url: Option<String>,
    /// Whether it was archived.
    pub is_archived: bool,
    /// The highest version number.
    pub latest_version: Option<i32>,
    /// The number of the version that every request without a version runs.
    pub live_version: Option<i32>,
    /// The chat settings.
    pub chat: ChatSettings,
    /// Maximum concurrent runs, others are queued; null: unlimited.
    pub max_concurrent_runs: Option<i32>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

/// `GET /api/workflows/{ref}`: the record, and the workflow's readiness.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownWorkflow {
    /// The record.
    #[serde(flatten)]
    pub workflow: WorkflowRecord,
    /// The live version's readiness; absent if that version names no credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Readiness>,
}

/// A published workflow's public data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublicWorkflow {
    /// UUIDv7.
    pub id: String,
    /// Display name.
    pub name: String,
    /// A description.
    pub description: Option<String>,
    /// Whether the chat requires a login.
    pub require_login: bool,
    /// The page to share.
    pub share_url: String,
    /// The chat settings.
    pub chat: PublicChat,
}

/// `GET /api/workflows/{ref}/uses`: everything that stops working when the workflow is archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowUses {
    /// Whether its chat is published.
    pub is_public: bool,
    /// Its triggers: `cron`, `webhook`.
    pub triggers: Vec<String>,
    /// App bindings that run it.
    pub apps: Vec<BindingUse>,
    /// Handles of other workflows whose live version runs it.
    pub workflows: Vec<String>,
}

/// An app binding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingUse {
    /// The app's alias.
    pub app: String,
    /// The binding's name.
    pub binding: String,
}

/// `POST /api/workflows/{ref}/versions` for a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteDraft {
    /// The draft's id.
    pub draft: String,
    /// For the caller's own use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The version's changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// `POST /api/workflows/{ref}/versions`: a checkpoint to save. The version has the graph of the checkpoint's run and
/// the checkpoint's config.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteCheckpoint {
    /// The checkpoint's id.
    pub checkpoint: String,
    /// For the caller's own use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// The version's changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// `POST /api/workflows/{ref}/versions/{n}/live`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetLive {
    /// Allows a version that has failed its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// `POST /api/workflows/{ref}/versions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateVersion {
    /// A graph in the format `graph/1`.
    pub graph: Value,
    /// The run's prompts and settings; null: the latest version's are kept.
    #[serde(default)]
    pub runnable_config: Option<Map<String, Value>>,
    /// For the caller's own use.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// The version's changes.
    #[serde(default)]
    pub notes: Option<String>,
}

/// `POST /api/workflows/{ref}/versions`: a graph, or a draft or a checkpoint to save.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum SaveVersion {
    /// A graph.
    Graph(CreateVersion),
    /// A draft.
    Draft(PromoteDraft),
    /// A checkpoint.
    Checkpoint(PromoteCheckpoint),
}

/// A frozen version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionRecord {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Counter from 1 within the workflow; null for a draft.
    pub version: Option<i32>,
    /// Whether it is a draft: a graph from a request.
    pub draft: bool,
    /// SHA-256 of graph and runnable config, lowercase hexadecimal; only of the graph in versions from older builds.
    pub digest: String,
    /// The graph.
    pub graph: Value,
    /// The run's prompts and settings.
    pub runnable_config: Option<Map<String, Value>>,
    /// For the caller's own use.
    pub metadata: Map<String, Value>,
    /// The version's changes.
    pub notes: Option<String>,
    /// The creator.
    pub created_by: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// The gate's decision; absent for a version without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<VersionGate>,
}

/// The answer after saving a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedVersion {
    /// The version.
    #[serde(flatten)]
    pub version: VersionRecord,
    /// The live version after the save.
    pub live: LiveAfterSave,
    /// The number of the version whose runnable config was kept; absent if the request has one, or if there was none to
    /// keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_kept_from: Option<i32>,
    /// Possible mistakes, which may be correct later; absent if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FieldError>,
}

/// The live version after a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveAfterSave {
    /// Its number; null if no version is live.
    pub version: Option<i32>,
    /// The reason.
    pub reason: LiveReason,
}

/// The reason for the live version after a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LiveReason {
    /// It has the saved content.
    Saved,
    /// It has the saved content, and another version was live before the save.
    Restored,
    /// The saved version has not passed its gate.
    Gate,
    /// A canary is compared with the live version.
    Canary,
}

/// `POST /api/workflows/check`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CheckVersion {
    /// A graph in the format `graph/1`.
    pub graph: Value,
    /// The run's prompts and settings.
    #[serde(default)]
    pub runnable_config: Option<Map<String, Value>>,
}

/// Problems in a graph and its config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// Whether they could be saved.
    pub valid: bool,
    /// Every error; pointers start at the graph, or with `/runnable_config`.
    pub errors: Vec<FieldError>,
    /// Possible mistakes, which may be correct later.
    pub warnings: Vec<FieldError>,
}

/// A version in a list: only its small fields. Read the whole version by its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionSummary {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Counter from 1 within the workflow; null for a draft.
    pub version: Option<i32>,
    /// Whether it is a draft: a graph from a request.
    pub draft: bool,
    /// SHA-256 of graph and runnable config, lowercase hexadecimal; only of the graph in versions from older builds.
    pub digest: String,
    /// The version's changes.
    pub notes: Option<String>,
    /// The creator.
    pub created_by: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// The gate's decision; absent for a version without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<VersionGate>,
}

/// A list page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{T}List"))]
pub struct Listed<T> {
    /// The entries.
    pub data: Vec<T>,
    /// The `cursor` for the next page; null at the end.
    pub next_cursor: Option<String>,
}

/// `POST /api/workflows/{ref}/publish`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// Whether the chat requires a login; absent: unchanged, and false for the first publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_login: Option<bool>,
}

/// The answer after publishing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// The published workflow.
    pub workflow: WorkflowRecord,
    /// The page to share; its last segment is the workflow's id.
    pub share_url: String,
}

/// The answer to a request to stop a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAnswer {
    /// The turn's status.
    pub status: StopStatus,
}

/// A turn's status after a request to stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopStatus {
    /// The request is stored and the turn is about to end.
    Stopping,
    /// The turn was stopped.
    Stopped,
    /// The turn had already ended.
    Completed,
    /// The turn had failed.
    Failed,
}
