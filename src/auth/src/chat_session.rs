//! Chat session tokens: short-lived, for one workflow, safe to hand to a browser.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::jwt::{
    Algorithm, HmacSecret, IssueError, LEEWAY, Purpose, Signer, Token, instant, seconds, verified,
};

/// Issuer (`iss`) of every session token. No access token may name it.
pub(crate) const ISSUER: &str = "callboard.chat";
const AUDIENCE: &str = "chat";
/// `typ` in the header. Keeps access tokens and session tokens apart, even if the same bytes sign both.
const TYPE: &str = "chat+jwt";
/// Maximum session token lifetime.
const MOST_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// The content of a new session token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChatSession {
    /// The owner of the threads that it opens.
    pub subject: String,
    /// Whether the caller chose the subject; otherwise it was generated for this token only.
    pub named: bool,
    /// The token's workflow.
    pub workflow: Uuid,
    /// That workflow's workspace.
    pub workspace: Uuid,
    /// The page that may use the token, if the caller named one.
    pub origin: Option<String>,
}

/// A valid session token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSession {
    /// The owner of the threads that it opens.
    pub subject: String,
    /// Whether the caller that requested the token chose the subject; otherwise it was generated for this token only
    /// and means nothing afterwards.
    pub named: bool,
    /// The token's only workflow.
    pub workflow: Uuid,
    /// That workflow's workspace.
    pub workspace: Uuid,
    /// The page that may use the token; `None`: any page that the service allows.
    pub origin: Option<String>,
    /// Its id (`jti`).
    pub id: Uuid,
    /// The token's expiry.
    pub expires_at: DateTime<Utc>,
}

/// A text is not a currently valid session token. Callers get no further detail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid chat session token")]
pub struct NoChatSession;

/// Issues and verifies session tokens.
pub struct ChatSessions {
    secret: HmacSecret,
    signer: Signer,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: String,
    iat: Value,
    exp: Value,
    /// Never issued; honoured if another signer with the same key sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<Value>,
    jti: Uuid,
    workflow_id: Uuid,
    workspace_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// Whether the subject was generated for this token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    random_subject: bool,
}

impl ChatSessions {
    /// Uses only this secret (`CHAT_TOKEN_SIGNING_KEY`).
    #[must_use]
    pub fn new(secret: HmacSecret) -> Self {
        Self { signer: Signer::new(secret.clone(), TYPE, None), secret }
    }

    /// Issues a token with this id, valid from `now` for `lifetime`.
    ///
    /// # Errors
    /// [`IssueError`], which does not happen.
    pub fn issue(
        &self,
        session: &NewChatSession,
        id: Uuid,
        now: DateTime<Utc>,
        lifetime: TimeDelta,
    ) -> Result<String, IssueError> {
        self.signer.sign(&Claims {
            iss: ISSUER.to_owned(),
            aud: AUDIENCE.to_owned(),
            sub: session.subject.clone(),
            iat: seconds(now).into(),
            exp: seconds(now + lifetime).into(),
            nbf: None,
            jti: id,
            workflow_id: session.workflow,
            workspace_id: session.workspace,
            origin: session.origin.clone(),
            random_subject: !session.named,
        })
    }

    /// Returns the session of a token that is valid at `now`. The caller checks that it is for the current workflow.
    ///
    /// # Errors
    /// [`NoChatSession`].
    pub fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<ChatSession, NoChatSession> {
        self.read(token, now).ok_or(NoChatSession)
    }

    fn read(&self, token: &str, now: DateTime<Utc>) -> Option<ChatSession> {
        let token = Token::read(token, Purpose::Own(TYPE)).ok()?;
        if token.header.algorithm != Algorithm::Hs256 {
            return None;
        }
        let claims = verified(&token, self.secret.checks())?;
        let claims: Claims = serde_json::from_value(Value::Object(claims)).ok()?;
        let (made, ends) = (instant(&claims.iat)?, instant(&claims.exp)?);
        let begun = match &claims.nbf {
            Some(from) => instant(from)? <= now + LEEWAY,
            None => true,
        };
        let good = begun
            && claims.iss == ISSUER
            && claims.aud == AUDIENCE
            && !claims.sub.is_empty()
            && made <= now + LEEWAY
            && now < ends
            && ends - made <= MOST_LIFETIME;
        good.then_some(ChatSession {
            subject: claims.sub,
            named: !claims.random_subject,
            workflow: claims.workflow_id,
            workspace: claims.workspace_id,
            origin: claims.origin,
            id: claims.jti,
            expires_at: ends,
        })
    }
}
