//! Workflows and versions over HTTP. Unset optional fields are `null`; unknown request fields are refused.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{ChatSettings, FieldError, PublicChat, Readiness, Timestamp, UpdateChatSettings, VersionGate};

/// `POST /api/workflows`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkflow {
    /// Shown to people; 1 to 200 characters.
    pub name: String,
    /// `^[a-z0-9]+(?:-[a-z0-9]+)*$`, at most 64, no UUID; made from the name when absent.
    #[serde(default)]
    pub handle: Option<String>,
    /// At most 4,000 characters.
    #[serde(default)]
    pub description: Option<String>,
    /// At most 32 tags of 64 characters.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// `PUT /api/workflows/{ref}`: what is not said stays as it is.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkflow {
    /// Shown to people; 1 to 200 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// As where it is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    /// At most 4,000 characters; null takes it away.
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub description: Option<Option<String>>,
    /// At most 32 tags of 64 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// What the chat shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chat: Option<UpdateChatSettings>,
    /// Most runs at the same time, the others wait for their turn; null: as many as there are.
    #[serde(default, deserialize_with = "stated", skip_serializing_if = "Option::is_none")]
    pub max_concurrent_runs: Option<Option<i32>>,
}

/// Null is something that is said.
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
    /// Shown to people.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// For finding it.
    pub tags: Vec<String>,
    /// Whose it is.
    pub workspace_id: String,
    /// True for a published workflow.
    pub is_public: bool,
    /// Whether the published chat asks for a login.
    pub require_login: bool,
    /// When it was published.
    pub published_at: Option<Timestamp>,
    /// By whom.
    pub published_by: Option<String>,
    /// The page to share, while published.
    pub share_url: Option<String>,
    /// Whether it was archived.
    pub is_archived: bool,
    /// The highest version number.
    pub latest_version: Option<i32>,
    /// The number of the version that every request without a version runs.
    pub live_version: Option<i32>,
    /// What the chat shows.
    pub chat: ChatSettings,
    /// Most runs at the same time, the others wait for their turn; null: as many as there are.
    pub max_concurrent_runs: Option<i32>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// `GET /api/workflows/{ref}`: the record, and whether it can run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShownWorkflow {
    /// The record.
    #[serde(flatten)]
    pub workflow: WorkflowRecord,
    /// Readiness of the live version; absent where that names no credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readiness: Option<Readiness>,
}

/// What anybody may know of a published workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PublicWorkflow {
    /// UUIDv7.
    pub id: String,
    /// Shown to people.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// Whether the chat asks for a login.
    pub require_login: bool,
    /// The page to share.
    pub share_url: String,
    /// What the chat shows.
    pub chat: PublicChat,
}

/// `GET /api/workflows/{ref}/uses`: what stops working when the workflow is archived.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkflowUses {
    /// Whether its chat is published.
    pub is_public: bool,
    /// Its triggers: `cron`, `webhook`.
    pub triggers: Vec<String>,
    /// Bindings of apps that run it.
    pub apps: Vec<BindingUse>,
    /// Handles of other workflows whose live version runs it.
    pub workflows: Vec<String>,
}

/// A binding of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BindingUse {
    /// Alias of the app.
    pub app: String,
    /// Name of the binding.
    pub binding: String,
}

/// `POST /api/workflows/{ref}/versions` of a draft.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteDraft {
    /// The draft's id.
    pub draft: String,
    /// For the caller's own use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// What is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// `POST /api/workflows/{ref}/versions`: a checkpoint to save. The version has the graph of the checkpoint's run and the config of the
/// checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PromoteCheckpoint {
    /// The checkpoint's id.
    pub checkpoint: String,
    /// For the caller's own use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// What is new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
}

/// `POST /api/workflows/{ref}/versions/{n}/live`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SetLive {
    /// Also a version that has failed its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub force: Option<bool>,
}

/// `POST /api/workflows/{ref}/versions`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateVersion {
    /// A graph of format `graph/1`.
    pub graph: Value,
    /// Prompts and settings of the run; null: those of the latest version are kept.
    #[serde(default)]
    pub runnable_config: Option<Map<String, Value>>,
    /// For the caller's own use.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// What is new.
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
    /// Counts from 1 within the workflow; null for a draft.
    pub version: Option<i32>,
    /// Whether it is a draft: a graph that came with a request.
    pub draft: bool,
    /// SHA-256 of graph and runnable config, lower-case hexadecimal; of the graph alone in versions of older builds.
    pub digest: String,
    /// The graph.
    pub graph: Value,
    /// Prompts and settings of the run.
    pub runnable_config: Option<Map<String, Value>>,
    /// For the caller's own use.
    pub metadata: Map<String, Value>,
    /// What is new.
    pub notes: Option<String>,
    /// Who saved it.
    pub created_by: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// What the gate has decided; absent for a version without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<VersionGate>,
}

/// Answer to saving a version.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SavedVersion {
    /// The version.
    #[serde(flatten)]
    pub version: VersionRecord,
    /// The live version after the save.
    pub live: LiveAfterSave,
    /// The number of the version whose runnable config was kept; absent if the request has one, or if there was none to keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_kept_from: Option<i32>,
    /// What may be a mistake, and may be right later; absent when there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<FieldError>,
}

/// The live version after a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LiveAfterSave {
    /// Its number; null if no version is live.
    pub version: Option<i32>,
    /// Why it is this version.
    pub reason: LiveReason,
}

/// Why a version is live after a save.
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
    /// A graph of format `graph/1`.
    pub graph: Value,
    /// Prompts and settings of the run.
    #[serde(default)]
    pub runnable_config: Option<Map<String, Value>>,
}

/// What is wrong with a graph and its config.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checked {
    /// Whether they would be saved.
    pub valid: bool,
    /// Every mistake; pointers begin at the graph, or with `/runnable_config`.
    pub errors: Vec<FieldError>,
    /// What may be a mistake, and may be right later.
    pub warnings: Vec<FieldError>,
}

/// A version in a list: everything that is small. The whole is read by its number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VersionSummary {
    /// UUIDv7.
    pub id: String,
    /// Its workflow.
    pub workflow_id: String,
    /// Counts from 1 within the workflow; null for a draft.
    pub version: Option<i32>,
    /// Whether it is a draft: a graph that came with a request.
    pub draft: bool,
    /// SHA-256 of graph and runnable config, lower-case hexadecimal; of the graph alone in versions of older builds.
    pub digest: String,
    /// What is new.
    pub notes: Option<String>,
    /// Who saved it.
    pub created_by: Option<String>,
    /// When.
    pub created_at: Timestamp,
    /// What the gate has decided; absent for a version without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<VersionGate>,
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{T}List"))]
pub struct Listed<T> {
    /// The entries.
    pub data: Vec<T>,
    /// Given as `cursor`, it answers the next part; null at the end.
    pub next_cursor: Option<String>,
}

/// `POST /api/workflows/{ref}/publish`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PublishRequest {
    /// Whether chatting asks for a login; absent: as it is, and not at the first publication.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub require_login: Option<bool>,
}

/// Answer to publishing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Published {
    /// The workflow as it is now.
    pub workflow: WorkflowRecord,
    /// The page to share; its last segment is the workflow's id.
    pub share_url: String,
}

/// Answer to stopping a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StopAnswer {
    /// How the turn stands.
    pub status: StopStatus,
}

/// How a turn stands after a request to stop it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum StopStatus {
    /// The request is stored and the turn is about to end.
    Stopping,
    /// The turn was stopped.
    Stopped,
    /// The turn had ended by itself.
    Completed,
    /// The turn had failed.
    Failed,
}
