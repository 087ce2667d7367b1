//! Which access tokens are believed.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use jsonwebtoken::DecodingKey;
use serde_json::{Map, Value};

use super::claims::{self, Claims, Read, SignedBy};
use super::header::BadHeader;
use super::jwks::{CachedKeys, KeysUnavailable};
use super::{Algorithm, HmacSecret, LEEWAY, Purpose, Token, verified};
use crate::chat_session;

/// What access tokens must be like.
#[derive(Clone)]
pub struct AccessRules {
    /// Algorithms that are taken; an algorithm without a key is not taken either.
    pub algorithms: Vec<Algorithm>,
    /// The configured secret of HS256 tokens.
    pub secret: Option<HmacSecret>,
    /// The generated secret of the service's own tokens.
    pub first_party: Option<FirstParty>,
    /// Keys of RS256 tokens.
    pub keys: Option<Arc<CachedKeys>>,
    /// A token must be for one of these; empty: for anybody.
    pub audience: Vec<String>,
    /// A token must be of this issuer, letter by letter; `None`: of any. The service's own tokens have their own.
    pub issuer: Option<String>,
}

/// The service's own tokens, where no secret is configured.
#[derive(Clone)]
pub struct FirstParty {
    /// Made by the service and kept by it.
    pub secret: HmacSecret,
    /// What its tokens name as their issuer.
    pub issuer: String,
}

/// A token that is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct Refused {
    /// What the caller is told.
    pub why: Refusal,
    /// The subject of the token, if its signature is good: failures may be counted only against this subject.
    pub subject: Option<String>,
}

/// Why a token is not believed. Each stands for one row of the table of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It is no token, its signature is not of the key it names, its key is unknown, or its claims are not what they
    /// must be. 401 `auth.invalid_token`.
    #[error("the token is not valid")]
    Invalid,
    /// Everything else is right, but it has ended. 401 `auth.token_expired`.
    #[error("the token has expired")]
    Expired,
    /// Its `alg` (also `none`) is not allowed, or there is no key for it. 401 `auth.unsupported_algorithm`.
    #[error("the token's algorithm is not allowed")]
    UnsupportedAlgorithm,
    /// Its audience is another one, or missing. 401 `auth.invalid_audience`.
    #[error("the token is for another audience")]
    InvalidAudience,
    /// Its issuer is another one, or missing. 401 `auth.invalid_issuer`.
    #[error("the token is of another issuer")]
    InvalidIssuer,
    /// The key set could not be had. 503 `auth.key_unavailable`.
    #[error("the token's key cannot be fetched")]
    KeyUnavailable,
}

impl From<Refusal> for Refused {
    fn from(why: Refusal) -> Self {
        Self { why, subject: None }
    }
}

impl From<KeysUnavailable> for Refused {
    fn from(_: KeysUnavailable) -> Self {
        Refusal::KeyUnavailable.into()
    }
}

/// Judges access tokens.
pub struct AccessTokens {
    rules: AccessRules,
}

impl AccessTokens {
    /// By these rules.
    #[must_use]
    pub fn new(rules: AccessRules) -> Self {
        Self { rules }
    }

    /// The claims of a token that is good at `now` (the clock's, never the machine's).
    ///
    /// Judged in this order: the text's shape, its algorithm, its signature, the form of its claims, issuer, audience,
    /// `nbf` and `iat`, `exp`. So a token with a bad signature is [`Refusal::Invalid`] whatever it says, and an expired
    /// one would be good with a later `exp`.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn verify(&self, token: &str, now: DateTime<Utc>) -> Result<Claims, Refused> {
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
            .map_err(|why| Refused { why, subject: claims::subject(&claims).ok() })
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

    async fn by_key_set(&self, token: &Token<'_>) -> Result<(Map<String, Value>, SignedBy), Refused> {
        let keys = self.rules.keys.as_ref().ok_or(Refusal::UnsupportedAlgorithm)?;
        let key = keys.find(token.header.key_id.as_deref()).await?.ok_or(Refusal::Invalid)?;
        let claims = verified(token, key.decoding()).ok_or(Refusal::Invalid)?;
        Ok((claims, SignedBy::KeySet))
    }

    /// Judges the claims of a token whose signature is good.
    fn judge(
        &self,
        members: &Map<String, Value>,
        signed_by: SignedBy,
        now: DateTime<Utc>,
    ) -> Result<Claims, Refusal> {
        let Read { claims, not_before } = claims::read(members, signed_by).map_err(|_| Refusal::Invalid)?;
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
