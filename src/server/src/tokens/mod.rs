//! Signed tokens: applies the configuration to the rules in `auth`.

mod key_source;
mod own;

use std::sync::Arc;

use auth::chat_session::ChatSessions;
use auth::jwt::jwks::BadKeySet;
use auth::jwt::{AccessRules, AccessTokens, Algorithm, FirstParty, HmacSecret};
use auth::keyring::KeyRing;
use config::Config;
use kernel::Clock;
use net::{Client, ClientError};
use store::{Store, StoreError};

pub(crate) use key_source::HttpKeySource;
pub(crate) use own::OwnTokens;

/// Tokens cannot be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokensError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("SERVICE_AUTH_JWKS_STATIC is not a valid key set: {0}")]
    KeySet(#[from] BadKeySet),
}

/// Issues and verifies all tokens.
pub(crate) struct Tokens {
    /// Verifies access tokens, including our own.
    pub(crate) access: AccessTokens,
    /// Issues our own access tokens.
    pub(crate) own: OwnTokens,
    /// Chat session tokens; `None` without `CHAT_TOKEN_SIGNING_KEY`.
    pub(crate) chat: Option<ChatSessions>,
}

impl Tokens {
    /// Creates the configured tokens. If `SERVICE_AUTH_JWT_SECRET` is not set, our own tokens are signed with a
    /// generated key.
    pub(crate) async fn from_config(
        config: &Config,
        store: &Store,
        ring: Option<&KeyRing>,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, TokensError> {
        let secret = config.auth.jwt_secret.as_ref().and_then(HmacSecret::of_text);
        let (issuer, audience) = (config.auth.issuer.clone(), config.auth.audience.clone());
        let generated = match &secret {
            Some(_) => None,
            None => HmacSecret::of_bytes(&store.service_key("access-tokens", ring).await?),
        };
        let signing = secret.clone().or_else(|| generated.clone());
        let signing =
            signing.ok_or_else(|| StoreError::Corrupt("the key of access tokens is empty".to_owned()))?;
        let own = OwnTokens::new(signing, issuer.clone(), audience.first().cloned());
        let mut algorithms: Vec<Algorithm> =
            config.auth.allowed_algorithms.iter().copied().map(algorithm).collect();
        if generated.is_some() && !algorithms.contains(&Algorithm::Hs256) {
            // Excluding the algorithm affects only other issuers, and no other secret exists to sign with.
            algorithms.push(Algorithm::Hs256);
        }
        let client = Client::operator(Arc::clone(clock))?;
        let keys = key_source::keys(&config.auth.jwks, &client, clock)?;
        let rules = AccessRules {
            algorithms,
            secret,
            first_party: generated.map(|secret| FirstParty { secret, issuer: own.issuer().to_owned() }),
            keys: keys.map(Arc::new),
            audience,
            issuer,
        };
        let chat = config.chat.token_signing_key.as_ref().and_then(HmacSecret::of_text);
        Ok(Self { access: AccessTokens::new(rules), own, chat: chat.map(ChatSessions::new) })
    }
}

fn algorithm(algorithm: config::Algorithm) -> Algorithm {
    match algorithm {
        config::Algorithm::Hs256 => Algorithm::Hs256,
        config::Algorithm::Rs256 => Algorithm::Rs256,
    }
}
