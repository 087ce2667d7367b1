//! Access tokens for users who sign in here.

use auth::jwt::{Claims, HmacSecret, IssueError, SignedBy, Signer, TYPE_ACCESS};
use chrono::{DateTime, TimeDelta, Utc};
use kernel::Secret;
use serde_json::{Value, json};
use uuid::Uuid;

/// The issuer of our own tokens if `SERVICE_AUTH_ISSUER` is not set.
const ISSUER: &str = "callboard";

/// Issues our own access tokens and recognizes them.
pub(crate) struct OwnTokens {
    signer: Signer,
    issuer: String,
    audience: Option<String>,
}

impl OwnTokens {
    pub(super) fn new(secret: HmacSecret, issuer: Option<String>, audience: Option<String>) -> Self {
        let signer = Signer::new(secret, TYPE_ACCESS, None);
        Self { signer, issuer: issuer.unwrap_or_else(|| ISSUER.to_owned()), audience }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// Issues a token for this user and sign-in session. It contains no rights, which are looked up on each use.
    pub(crate) fn issue(
        &self,
        id: Uuid,
        user: Uuid,
        session: Uuid,
        now: DateTime<Utc>,
        lifetime: TimeDelta,
    ) -> Result<Secret, IssueError> {
        let mut claims = json!({
            "iss": self.issuer, "sub": user, "sid": session, "jti": id, "type": "user",
            "iat": now.timestamp(), "exp": (now + lifetime).timestamp(),
        });
        if let (Some(audience), Some(members)) = (&self.audience, claims.as_object_mut()) {
            members.insert("aud".to_owned(), Value::String(audience.clone()));
        }
        self.signer.sign(&claims).map(Secret::from)
    }

    /// Returns the user and sign-in session of a verified token if it is our own.
    pub(crate) fn read(&self, claims: &Claims) -> Option<(Uuid, Uuid)> {
        let ours = match claims.signed_by {
            SignedBy::FirstParty => true,
            SignedBy::Secret => claims.issuer.as_ref() == Some(&self.issuer),
            SignedBy::KeySet => false,
        };
        let session = claims.session.as_deref().filter(|_| ours)?;
        Some((Uuid::parse_str(&claims.subject).ok()?, Uuid::parse_str(session).ok()?))
    }
}
