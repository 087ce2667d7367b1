//! Session tokens of the chat over HTTP. Source: `interface.md`, "Chat session".

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/chat/session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateChatSession {
    /// The one workflow that the token is for.
    pub workflow_id: String,
    /// Who the visitor is to the caller, at most 200 characters: tokens for the same user open the same threads. Unset, each
    /// token has a visitor of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Scheme, host and port of the page that the token may be used from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A session token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatSessionAnswer {
    /// What goes behind `Bearer` on the chat's routes.
    pub client_secret: String,
    /// When it ends; ask for the next one 30 seconds before.
    pub expires_at: Timestamp,
}
