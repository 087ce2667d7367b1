//! Session tokens of chats: short-lived, for one workflow, safe to hand to a browser.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::jwt::{
    Algorithm, HmacSecret, IssueError, LEEWAY, Purpose, Signer, Token, instant, seconds, verified,
};

/// What every session token names as its issuer. No access token may name it.
pub(crate) const ISSUER: &str = "callboard.chat";
const AUDIENCE: &str = "chat";
/// In the header; keeps an access token from passing here and a session token from passing there, also when both are
/// signed with the same bytes.
const TYPE: &str = "chat+jwt";
/// The longest that one may be good for.
const MOST_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// What a session token is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChatSession {
    /// Whose threads it opens.
    pub subject: String,
    /// Whether the caller chose the subject; else it was made for this token alone.
    pub named: bool,
    /// The workflow it is for.
    pub workflow: Uuid,
    /// That workflow's workspace.
    pub workspace: Uuid,
    /// The page it may be used from, where the caller named one.
    pub origin: Option<String>,
}

/// A session token that is good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatSession {
    /// Whose threads it opens.
    pub subject: String,
    /// Whether the caller that requested the token chose the subject; else it was made for this token alone, and means
    /// nothing after it.
    pub named: bool,
    /// The one workflow it is for.
    pub workflow: Uuid,
    /// That workflow's workspace.
    pub workspace: Uuid,
    /// The page it may be used from; `None`: any that the service allows.
    pub origin: Option<String>,
    /// Its id (`jti`).
    pub id: Uuid,
    /// When it ends.
    pub expires_at: DateTime<Utc>,
}

/// A text is no session token that is good now. Callers are told no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a valid chat session token")]
pub struct NoChatSession;

/// Makes and judges session tokens.
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
    /// Never issued; honoured where another signer of the same key sets it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<Value>,
    jti: Uuid,
    workflow_id: Uuid,
    workspace_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    origin: Option<String>,
    /// The subject was made for this token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    random_subject: bool,
}

impl ChatSessions {
    /// Under this secret (`CHAT_TOKEN_SIGNING_KEY`) alone.
    #[must_use]
    pub fn new(secret: HmacSecret) -> Self {
        Self { signer: Signer::new(secret.clone(), TYPE, None), secret }
    }

    /// A token with this id, good from `now` for `lifetime`.
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

    /// The session of a token that is good at `now`. That it is for the workflow at hand is the caller's to check.
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
