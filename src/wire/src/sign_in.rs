//! Sign-in by e-mail. What holds a secret has no `Debug`.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// Asks for a mail with a link and a code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StartSignIn {
    /// Whose mail address.
    pub email: String,
    /// A path of the service to go to afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_to: Option<String>,
}

/// Agrees that a hosted app learns who the user is, and asks for an authorization code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ApproveApp {
    /// `code`.
    pub response_type: String,
    /// The alias of the app.
    pub client_id: String,
    /// `/__service/auth/callback` of the app.
    pub redirect_uri: String,
    /// SHA-256 of the verifier, base64url.
    pub code_challenge: String,
    /// `S256`.
    pub code_challenge_method: String,
    /// Returned as it is.
    pub state: String,
}

/// The same for every address.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignInStarted {
    /// Goes with the code, where no cookie does. A secret of the caller.
    pub challenge: String,
}

/// Shows the code.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VerifyCode {
    /// What the start was answered with; absent where the cookie comes along.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub challenge: Option<String>,
    /// The same address again.
    pub email: String,
    /// The six digits.
    pub code: String,
}

/// A user has signed in.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SignedIn {
    /// Goes into the header `Authorization`.
    pub access_token: String,
    /// Is worth one more of these answers.
    pub refresh_token: String,
    /// `bearer`.
    pub token_type: String,
    /// Seconds that the access token is good for.
    pub expires_in: i64,
    /// Who.
    pub user: UserRecord,
    /// Behind a link: the path to go to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub return_to: Option<String>,
}

/// A code that signs in a terminal.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TerminalCode {
    /// What `POST /api/auth/refresh` takes, once.
    pub code: String,
    /// Seconds that it is good for.
    pub expires_in: i64,
}

/// `POST /api/auth/token`, sent by a page of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RequestPageToken {
    /// Whether the user is active; otherwise the sign-in still ends an hour after its last use.
    pub active: bool,
}

/// An access token for a page of a signed-in browser.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageToken {
    /// Goes into the header `Authorization`. It ends with the sign-in of the browser.
    pub access_token: String,
    /// `bearer`.
    pub token_type: String,
    /// Seconds that the access token is good for.
    pub expires_in: i64,
    /// Who.
    pub user: UserRecord,
}

/// Puts a new pair of tokens in the place of the old one.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refresh {
    /// The latest one.
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
    /// What they are called.
    pub name: Option<String>,
}

/// Who the caller is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Me {
    /// The person.
    pub user: UserRecord,
    /// Where they belong.
    pub workspaces: Vec<WorkspaceRole>,
    /// Their sign-ins that have not ended, the newest first.
    #[serde(default)]
    pub sessions: Vec<SessionRecord>,
}

/// A sign-in of a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SessionRecord {
    /// Its id.
    pub id: String,
    /// `browser` keeps a cookie; `terminal` keeps tokens.
    pub kind: String,
    /// What the client says it is.
    pub user_agent: Option<String>,
    /// When it began.
    pub created_at: Timestamp,
    /// When it was last used, to the minute.
    pub last_used_at: Timestamp,
    /// When it ends at the latest.
    pub expires_at: Timestamp,
    /// Whether the request that asks belongs to it.
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
