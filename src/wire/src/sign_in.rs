//! Sign-in by e-mail. Types with a secret have no `Debug`.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Requests a mail with a link and a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartSignIn {
    /// The user's mail address.
    pub email: String,
    /// A path on this service to open afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_to: Option<String>,
}

/// Agrees that a hosted app learns the user's identity, and requests an authorization code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApproveApp {
    /// `code`.
    pub response_type: String,
    /// The app's alias.
    pub client_id: String,
    /// The app's `/__service/auth/callback`.
    pub redirect_uri: String,
    /// SHA-256 of the verifier, base64url.
    pub code_challenge: String,
    /// `S256`.
    pub code_challenge_method: String,
    /// Returned unchanged.
    pub state: String,
}

/// The answer to a sign-in request, identical for every address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignInStarted {
    /// Sent with the code, instead of a cookie. The caller's secret.
    pub challenge: String,
}

/// Presents the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyCode {
    /// The challenge in the start's answer; absent if the cookie is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// The same address again.
    pub email: String,
    /// The six digits.
    pub code: String,
}

/// The answer after a sign-in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignedIn {
    /// For the header `Authorization`.
    pub access_token: String,
    /// Can be exchanged once for another such answer.
    pub refresh_token: String,
    /// `bearer`.
    pub token_type: String,
    /// Access token lifetime in seconds.
    pub expires_in: i64,
    /// The user.
    pub user: UserRecord,
    /// The path to open after a link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_to: Option<String>,
}

/// A code that signs in a terminal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TerminalCode {
    /// A code that `POST /api/auth/refresh` accepts once.
    pub code: String,
    /// Lifetime in seconds.
    pub expires_in: i64,
}

/// `POST /api/auth/token`, sent by one of the service's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestPageToken {
    /// Whether the user is active; otherwise the sign-in still ends an hour after its last use.
    pub active: bool,
}

/// An access token for a page in a signed-in browser.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageToken {
    /// For the header `Authorization`. It ends with the browser's sign-in.
    pub access_token: String,
    /// `bearer`.
    pub token_type: String,
    /// Access token lifetime in seconds.
    pub expires_in: i64,
    /// The user.
    pub user: UserRecord,
}

/// Replaces a token pair with a new one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refresh {
    /// The latest refresh token.
    pub refresh_token: String,
}

/// A person with an account.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UserRecord {
    /// Their id.
    pub id: String,
    /// Their mail address.
    pub email: Option<String>,
    /// Their name.
    pub name: Option<String>,
}

/// The caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Me {
    /// The person.
    pub user: UserRecord,
    /// Their workspaces.
    pub workspaces: Vec<WorkspaceRole>,
    /// Their active sign-ins, the newest first.
    #[serde(default)]
    pub sessions: Vec<SessionRecord>,
}

/// A person's sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionRecord {
    /// Its id.
    pub id: String,
    /// `browser` keeps a cookie; `terminal` keeps tokens.
    pub kind: String,
    /// The client's `User-Agent`.
    pub user_agent: Option<String>,
    /// Start time.
    pub created_at: Timestamp,
    /// Last use, to the minute.
    pub last_used_at: Timestamp,
    /// The latest possible end.
    pub expires_at: Timestamp,
    /// Whether the current request belongs to it.
    pub current: bool,
}

/// A workspace and the user's role in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WorkspaceRole {
    /// Its id.
    pub id: String,
    /// Its slug.
    pub slug: String,
    /// `viewer`, `editor`, `admin` or `owner`.
    pub role: String,
}

/// `POST /api/auth/logout`.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LogOut {
    /// Ends the sign-in of this token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<String>,
}
