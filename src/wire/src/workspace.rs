//! Workspaces and their members over HTTP.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/workspaces`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateWorkspace {
    /// Name in requests: words of a-z and 0-9 with hyphens between them, at most 64 characters. It never changes.
    pub slug: String,
    /// Display name, at most 100 characters (default: the slug).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// `PATCH /api/workspaces/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateWorkspace {
    /// Display name, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Retention of a training's model replies after its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training_calls: Option<TrainingCalls>,
}

/// Retention of a training's model replies after its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TrainingCalls {
    /// Keep them as long as the run.
    #[default]
    Keep,
    /// Erase them.
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

    /// Parses a setting's name.
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
    /// Name in requests.
    pub slug: String,
    /// Display name.
    pub name: String,
    /// The caller's role there: `viewer`, `editor`, `admin` or `owner`; null if the caller is not a user.
    pub role: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Retention of a training's model replies after its end.
    #[serde(default)]
    pub training_calls: TrainingCalls,
    /// Its storage use; null in lists, and before the first measurement.
    #[serde(default)]
    pub storage: Option<WorkspaceStorage>,
}

/// A workspace's storage use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceStorage {
    /// Bytes of its runs, events, messages and search indexes; approximate if large.
    pub bytes: i64,
    /// Maximum bytes; null: unlimited.
    pub limit: Option<i64>,
    /// Measurement time.
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

/// A workspace member, or a person invited to be one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemberRecord {
    /// Their account's id.
    pub user_id: String,
    /// Their mail address; null after their erasure.
    pub email: Option<String>,
    /// Their name, if they gave one.
    pub name: Option<String>,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
    /// `active`; `invited` before the first sign-in; `expired` if they did not sign in on time.
    pub status: String,
    /// The invitation's expiry; null for a member.
    pub invited_until: Option<Timestamp>,
    /// Time at which they were added or last invited.
    pub created_at: Timestamp,
}
