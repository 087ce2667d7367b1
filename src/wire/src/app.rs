//! Hosted apps over HTTP.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/apps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateApp {
    /// The first label of the app's host: 1 to 63 characters of a-z, 0-9 and `-`, which neither begin nor end with `-`;
    /// not a UUID, not `www`; unique in the installation. It never changes.
    pub alias: String,
    /// Display name, at most 100 characters.
    pub name: String,
    /// The app's audience (default: `members`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AppAccess>,
}

/// `PATCH /api/apps/{app}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateApp {
    /// Display name, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The app's audience. Changing it requires the right to publish.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AppAccess>,
}

/// An app's audience.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppAccess {
    /// Every visitor.
    Public,
    /// Signed-in members of the workspace.
    #[default]
    Members,
}

impl AppAccess {
    /// Every name.
    pub const NAMES: [&str; 2] = [Self::Public.as_str(), Self::Members.as_str()];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Public => "public",
            Self::Members => "members",
        }
    }

    /// Parses a name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Public, Self::Members].into_iter().find(|access| access.as_str() == name)
    }
}

/// An app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AppRecord {
    /// UUIDv7.
    pub id: String,
    /// The first label of its host.
    pub alias: String,
    /// Display name.
    pub name: String,
    /// Its workspace.
    pub workspace_id: String,
    /// The app's audience.
    pub access: AppAccess,
    /// The app's address.
    pub url: String,
    /// The release that visitors receive; null: nothing is published.
    pub active_release: Option<ActiveRelease>,
    /// The active release's permission digest; null: nothing is published.
    pub permission_revision: Option<String>,
    /// Creation time.
    pub created_at: Timestamp,
    /// Time of the last change to its name or access.
    pub updated_at: Timestamp,
}

/// The release that an app's visitors receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveRelease {
    /// UUIDv7.
    pub id: String,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment with its files.
    pub deployment_id: String,
    /// Publication time.
    pub created_at: Timestamp,
}
