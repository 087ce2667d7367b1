//! Verifies identity tokens and returns the identity.

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use super::Kept;
use crate::jwt::jwks::CachedKeys;
use crate::jwt::{Algorithm, LEEWAY, Purpose, Token, audience, date, json, text, verified};
use crate::sign_in::EmailAddress;

/// Rules for identity tokens.
#[derive(Debug, Clone)]
pub struct IdTokenRules {
    /// The issuer, compared exactly.
    pub issuer: String,
    /// The expected audience: our client id.
    pub client_id: String,
}

/// A user who signed in at the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The permanent user id at the provider.
    pub subject: String,
    /// The current mail address, verified by the provider.
    pub email: EmailAddress,
}

/// A verified identity token.
pub struct Judged {
    subject: String,
    members: Map<String, Value>,
}

/// A rejected identity token. The text is for the log and contains no token data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoIdentity {
    /// It is not an acceptable token, or its algorithm is not RS256.
    #[error("the identity token is malformed or not signed with RS256")]
    Malformed,
    /// No provider key made its signature.
    #[error("the identity token's signature matches no key of the provider")]
    Signature,
    /// A claim is missing or invalid.
    #[error("the identity token's {0} is missing or wrong")]
    Claim(&'static str),
    /// The provider has not verified a mail address.
    #[error("the provider has not verified an email address: email or email_verified is missing or false")]
    Unverified,
    /// The userinfo endpoint describes another subject, or none.
    #[error("the userinfo endpoint's response is not about the subject of the identity token")]
    OtherSubject,
    /// The provider's keys are not available.
    #[error("the provider's keys cannot be fetched")]
    KeysUnavailable,
}

impl IdTokenRules {
    /// Verifies a token at `now` against its request's secrets.
    ///
    /// # Errors
    /// [`NoIdentity`].
    pub async fn judge(
        &self,
        token: &str,
        kept: &Kept,
        keys: &CachedKeys,
        now: DateTime<Utc>,
    ) -> Result<Judged, NoIdentity> {
        let token = Token::read(token, Purpose::Identity).map_err(|_| NoIdentity::Malformed)?;
        if token.header.algorithm != Algorithm::Rs256 {
            return Err(NoIdentity::Malformed);
        }
        let key = keys.find(token.header.key_id.as_deref()).await;
        let key = key.map_err(|_| NoIdentity::KeysUnavailable)?.ok_or(NoIdentity::Signature)?;
        let claims = verified(&token, key.decoding()).ok_or(NoIdentity::Signature)?;
        let subject = self.subject(&claims, kept, now)?;
        Ok(Judged { subject, members: claims })
    }

    fn subject(
        &self,
        members: &Map<String, Value>,
        kept: &Kept,
        now: DateTime<Utc>,
    ) -> Result<String, NoIdentity> {
        let wrong = |name: &'static str| NoIdentity::Claim(name);
        let said = |name: &'static str| text(members, name).map_err(|_| wrong(name));
        if said("iss")?.as_ref() != Some(&self.issuer) {
            return Err(wrong("iss"));
        }
        let audience = audience(members).map_err(|_| wrong("aud"))?;
        if !audience.contains(&self.client_id) {
            return Err(wrong("aud"));
        }
        // With several audiences, `azp` must name the requesting client.
        let party = said("azp")?;
        if party.as_ref().map_or(audience.len() > 1, |party| *party != self.client_id) {
            return Err(wrong("azp"));
        }
        let time = |name: &'static str| date(members, name).map_err(|_| wrong(name));
        if time("exp")?.is_none_or(|at| at <= now) {
            return Err(wrong("exp"));
        }
        if time("iat")?.is_none_or(|at| at > now + LEEWAY) {
            return Err(wrong("iat"));
        }
        if time("nbf")?.is_some_and(|at| at > now + LEEWAY) {
            return Err(wrong("nbf"));
        }
        if !said("nonce")?.is_some_and(|nonce| kept.is_nonce(&nonce)) {
            return Err(wrong("nonce"));
        }
        said("sub")?.ok_or(wrong("sub"))
    }
}

impl Judged {
    /// Whether the token contains all requested claims. A provider may return them only at its userinfo endpoint
    /// (OpenID Connect Core, 5.4).
    #[must_use]
    pub fn says_all(&self) -> bool {
        self.members.contains_key("email") && self.members.contains_key("email_verified")
    }

    /// The identity according to the token alone.
    ///
    /// # Errors
    /// [`NoIdentity::Unverified`].
    pub fn identity(self) -> Result<Identity, NoIdentity> {
        Ok(Identity { email: email(&self.members)?, subject: self.subject })
    }

    /// The identity according to the userinfo endpoint, which counts only for the token's own subject (5.3.2).
    ///
    /// # Errors
    /// [`NoIdentity::OtherSubject`] and [`NoIdentity::Unverified`].
    pub fn identity_by(self, userinfo: &[u8]) -> Result<Identity, NoIdentity> {
        let members = json::object(userinfo).ok_or(NoIdentity::OtherSubject)?;
        if members.get("sub").and_then(Value::as_str) != Some(&self.subject) {
            return Err(NoIdentity::OtherSubject);
        }
        Ok(Identity { email: email(&members)?, subject: self.subject })
    }
}

/// The address, if the provider has verified it. Some providers send the flag as text.
fn email(members: &Map<String, Value>) -> Result<EmailAddress, NoIdentity> {
    let is_verified = match members.get("email_verified") {
        Some(Value::Bool(verified)) => *verified,
        Some(Value::String(verified)) => verified == "true",
        _ => false,
    };
    let email = members.get("email").and_then(Value::as_str).filter(|_| is_verified);
    let email = email.and_then(|email| EmailAddress::parse(email).ok());
    email.ok_or(NoIdentity::Unverified)
}
