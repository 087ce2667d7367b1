//! Hosted apps over HTTP.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/apps`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateApp {
    /// The first label of the app's host: 1 to 63 characters of a-z, 0-9 and `-`, which neither begin nor end with `-`; not a UUID,
    /// not `www`; unique in the installation. It never changes.
    pub alias: String,
    /// Shown to people, at most 100 characters.
    pub name: String,
    /// Who can open the app (default: `members`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AppAccess>,
}

/// `PATCH /api/apps/{app}`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct UpdateApp {
    /// Shown to people, at most 100 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Who can open the app. Changing it needs what publishing needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub access: Option<AppAccess>,
}

/// Who can open an app.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AppAccess {
    /// Every visitor.
    Public,
    /// Members of the workspace who are signed in.
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

    /// The access with this name.
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
    /// Shown to people.
    pub name: String,
    /// Its workspace.
    pub workspace_id: String,
    /// Who can open it.
    pub access: AppAccess,
    /// Where it opens.
    pub url: String,
    /// What visitors receive; null: nothing is published.
    pub active_release: Option<ActiveRelease>,
    /// What the active release may do, as a digest; null: nothing is published.
    pub permission_revision: Option<String>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When its name or access last changed.
    pub updated_at: Timestamp,
}

/// The release that visitors of an app receive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActiveRelease {
    /// UUIDv7.
    pub id: String,
    /// Its number within the app, from 1.
    pub number: i32,
    /// The deployment whose files it serves.
    pub deployment_id: String,
    /// When it was published.
    pub created_at: Timestamp,
}
