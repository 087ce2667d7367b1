//! Chat session tokens over HTTP. Source: `interface.md`, "Chat session".

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// `POST /api/chat/session`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CreateChatSession {
    /// The token's only workflow.
    pub workflow_id: String,
    /// The caller's id for the visitor, at most 200 characters: tokens for the same user open the same threads. If
    /// unset, each token gets a new visitor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Scheme, host and port of the page that may use the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<String>,
}

/// A session token.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChatSessionAnswer {
    /// The token to send after `Bearer` on the chat's routes.
    pub client_secret: String,
    /// Expiry; request the next token 30 seconds earlier.
    pub expires_at: Timestamp,
}
