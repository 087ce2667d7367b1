//! Workspaces and their members over HTTP.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkspace {
    /// How requests name it: words of a-z and 0-9 with hyphens between them, at most 64 characters, for good.
    pub slug: String,
    /// Shown to people, at most 100 characters; the slug where it is not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `PATCH /api/workspaces/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkspace {
    /// Shown to people, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What becomes of the replies of a training's calls after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_calls: Option<TrainingCalls>,
}

/// What becomes of the replies of a training's calls of models after its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingCalls {
    /// They stay as long as the run.
    #[default]
    Keep,
    /// They are erased.
    Drop,
}

impl TrainingCalls {
    /// Every name.
    pub const NAMES: [&str; 2] = [Self::Keep.as_str(), Self::Drop.as_str()];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Drop => "drop",
        }
    }

    /// The setting with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Keep, Self::Drop].into_iter().find(|setting| setting.as_str() == name)
    }
}

/// A workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceRecord {
    /// UUIDv7.
    pub id: String,
    /// How requests name it.
    pub slug: String,
    /// Shown to people.
    pub name: String,
    /// What the caller is there: `viewer`, `editor`, `admin` or `owner`; null for a caller who is no user.
    pub role: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// What becomes of the replies of a training's calls after its end.
    #[serde(default)]
    pub training_calls: TrainingCalls,
    /// What it keeps; null in lists, and before it was measured.
    #[serde(default)]
    pub storage: Option<WorkspaceStorage>,
}

/// What a workspace keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceStorage {
    /// Bytes of its runs, events, messages and search indexes; about, where it is much.
    pub bytes: i64,
    /// Bytes that it may keep; null: as many as there are.
    pub limit: Option<i64>,
    /// When it was measured.
    pub measured_at: Timestamp,
}

/// `POST /api/workspaces/{id}/members`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AddMember {
    /// Their mail address; an invitation goes there.
    pub email: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
}

/// `PATCH /api/workspaces/{id}/members/{user_id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateMember {
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
}

/// A person who belongs to a workspace, or is invited to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberRecord {
    /// Id of their account.
    pub user_id: String,
    /// Their mail address; null once they were erased.
    pub email: Option<String>,
    /// What they are called, where they said so.
    pub name: Option<String>,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
    /// `active`; `invited` until they sign in for the first time; `expired` when they did not in time.
    pub status: String,
    /// Until when the invitation may be taken up; null for a member.
    pub invited_until: Option<Timestamp>,
    /// When they were added or last invited.
    pub created_at: Timestamp,
}
