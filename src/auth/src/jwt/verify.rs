//! Decides which access tokens are valid.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use jsonwebtoken::DecodingKey;
use serde_json::{Map, Value};

use super::claims::{self, Claims, ParsedClaims, SignedBy};
use super::header::BadHeader;
use super::jwks::{CachedKeys, KeysUnavailable};
use super::{Algorithm, HmacSecret, LEEWAY, Purpose, Token, verified};
use crate::chat_session;

/// Rules for access tokens.
#[derive(Clone)]
pub struct AccessRules {
    /// Accepted algorithms; an algorithm without a key is not accepted either.
    pub algorithms: Vec<Algorithm>,
    /// The configured secret for HS256 tokens.
    pub secret: Option<HmacSecret>,
    /// The generated secret for the service's own tokens.
    pub first_party: Option<FirstParty>,
    /// Keys for RS256 tokens.
    pub keys: Option<Arc<CachedKeys>>,
    /// Accepted audiences; empty: any.
    pub audience: Vec<String>,
    /// The required issuer, compared exactly; `None`: any. The service's own tokens have their own issuer.
    pub issuer: Option<String>,
}

/// The service's own tokens, if no secret is configured.
#[derive(Clone)]
pub struct FirstParty {
    /// Generated and stored by the service.
    pub secret: HmacSecret,
    /// The issuer of its tokens.
    pub issuer: String,
}

/// A rejected token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct RejectedToken {
    /// The reason sent to the caller.
    pub why: Refusal,
    /// The token's subject, if its signature is valid: failures may be counted only against this subject.
    pub subject: Option<String>,
}

/// Reasons to reject a token. Each maps to one row of the error table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is not a token, the named key did not sign it, its key is unknown, or its claims are invalid. 401
    /// `auth.invalid_token`.
    #[error("the token is not valid")]
    Invalid,
    /// It has expired but is otherwise valid. 401 `auth.token_expired`.
    #[error("the token has expired")]
    Expired,
    /// Its `alg` (also `none`) is not allowed, or has no key. 401 `auth.unsupported_algorithm`.
    #[error("the token's algorithm is not allowed")]
    UnsupportedAlgorithm,
    /// Its audience is different or missing. 401 `auth.invalid_audience`.
    #[error("the token is for another audience")]
    InvalidAudience,
    /// Its issuer is different or missing. 401 `auth.invalid_issuer`.
    #[error("the token is of another issuer")]
    InvalidIssuer,
    /// The key set is not available. 503 `auth.key_unavailable`.
    #[error("the token's key cannot be fetched")]
    KeyUnavailable,
}

impl From<Refusal> for RejectedToken {
    fn from(why: Refusal) -> Self {
        Self { why, subject: None }
    }
}

impl From<KeysUnavailable> for RejectedToken {
    fn from(_: KeysUnavailable) -> Self {
        Refusal::KeyUnavailable.into()
    }
}

/// Verifies access tokens.
pub struct AccessTokens {
    rules: AccessRules,
}

impl AccessTokens {
    /// Uses these rules.
    #[must_use]
    pub fn new(rules: AccessRules) -> Self {
        Self { rules }
    }

    /// Returns the claims of a token that is valid at `now` (from the injected clock, never the system's).
    ///
    /// Checks in this order: the text's shape, algorithm, signature, the form of the claims, issuer, audience, `nbf`
    /// and `iat`, `exp`. So a token with a bad signature is always [`Refusal::Invalid`], and an expired token would be
    /// valid with a later `exp`.
    ///
    /// # Errors
    /// [`RejectedToken`].
    pub async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, RejectedToken> {
        let token = Token::read(token, Purpose::Access).map_err(|bad| match bad {
            BadHeader::Malformed => Refusal::Invalid,
            BadHeader::UnknownAlgorithm => Refusal::UnsupportedAlgorithm,
        })?;
        let algorithm = token.header.algorithm;
        if !self.rules.algorithms.contains(&algorithm) {
            return Err(Refusal::UnsupportedAlgorithm.into());
        }
        let (claims, signed_by) = match algorithm {
            Algorithm::Hs256 => self.by_secret(&token)?,
            Algorithm::Rs256 => self.by_key_set(&token).await?,
        };
        self.judge(&claims, signed_by, now)
            .map_err(|why| RejectedToken { why, subject: claims::subject(&claims).ok() })
    }

    fn by_secret(&self, token: &Token<'_>) -> Result<(Map<String, Value>, SignedBy), Refusal> {
        let configured = self.rules.secret.as_ref().map(|secret| (secret.checks(), SignedBy::Secret));
        let own = self.rules.first_party.as_ref().map(|own| (own.secret.checks(), SignedBy::FirstParty));
        let keys: Vec<(&DecodingKey, SignedBy)> = configured.into_iter().chain(own).collect();
        if keys.is_empty() {
            return Err(Refusal::UnsupportedAlgorithm);
        }
        let found = keys.into_iter().find_map(|(key, by)| Some((verified(token, key)?, by)));
        found.ok_or(Refusal::Invalid)
    }

    async fn by_key_set(&self, token: &Token<'_>) -> Result<(Map<String, Value>, SignedBy), RejectedToken> {
        let keys = self.rules.keys.as_ref().ok_or(Refusal::UnsupportedAlgorithm)?;
        let key = keys.find(token.header.key_id.as_deref()).await?.ok_or(Refusal::Invalid)?;
        let claims = verified(token, key.decoding()).ok_or(Refusal::Invalid)?;
        Ok((claims, SignedBy::KeySet))
    }

    /// Checks the claims of a token with a valid signature.
    fn judge(
        &self,
        members: &Map<String, Value>,
        signed_by: SignedBy,
        now: DateTime<Utc>,
    ) -> Result<Claims, Refusal> {
        let ParsedClaims { claims, not_before } =
            claims::read(members, signed_by).map_err(|_| Refusal::Invalid)?;
        let expected = match (signed_by, &self.rules.first_party) {
            (SignedBy::FirstParty, Some(own)) => Some(&own.issuer),
            _ => self.rules.issuer.as_ref(),
        };
        let reserved = claims.issuer.as_deref() == Some(chat_session::ISSUER);
        if reserved || expected.is_some_and(|expected| claims.issuer.as_ref() != Some(expected)) {
            return Err(Refusal::InvalidIssuer);
        }
        let ours = |audience: &String| self.rules.audience.contains(audience);
        if !self.rules.audience.is_empty() && !claims.audience.iter().any(ours) {
            return Err(Refusal::InvalidAudience);
        }
        let latest = now + LEEWAY;
        if not_before.is_some_and(|at| at > latest) || claims.issued_at.is_some_and(|at| at > latest) {
            return Err(Refusal::Invalid);
        }
        if claims.expires_at <= now {
            return Err(Refusal::Expired);
        }
        Ok(claims)
    }
}
