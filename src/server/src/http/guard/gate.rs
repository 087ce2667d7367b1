//! The gate: resolves a request's credential to a principal or an error.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use auth::exposure::Asks;
use auth::failures::FailureLimits;
use auth::jwt::{Claims, Refusal, Workspaces};
use auth::principal::{Actor, Principal};
use auth::role::Role;
use auth::scope::ScopeSet;
use auth::service_token::{self, TokenDigest};
use chrono::{DateTime, Utc};
use config::{Bootstrap, Config};
use kernel::{Clock, Secret};
use parking_lot::Mutex;
use secrecy::ExposeSecret;
use store::{Store, StoreError, StoredServiceToken, StoredUser, TokenLookup};
use uuid::Uuid;
use wire::ErrorCode;

use super::credential::Credential;
use super::limiter::Limiter;
use crate::http::error::{ApiError, ApiResult};
use crate::tokens::Tokens;

/// Lifetime of the cached answer whether any service token is stored.
const TOKENS_KNOWN_FOR: Duration = Duration::from_secs(1);

/// The parts of a [`Gate`].
pub(crate) struct GateParts<'a> {
    pub(crate) config: &'a Config,
    pub(crate) asks: Asks,
    pub(crate) store: Store,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) tokens: Arc<Tokens>,
}

/// Authenticates credentials.
pub(crate) struct Gate {
    asks: Asks,
    bootstrap: Option<BootstrapToken>,
    store: Store,
    clock: Arc<dyn Clock>,
    limiter: Limiter,
    tokens: Arc<Tokens>,
    /// The last lookup for service tokens: its time and whether any was stored.
    tokens_stored: Mutex<Option<(Duration, bool)>>,
}

struct BootstrapToken {
    secret: Secret,
    expires_at: Option<DateTime<Utc>>,
    scopes: ScopeSet,
}

impl BootstrapToken {
    fn from_config(bootstrap: &Bootstrap) -> Option<Self> {
        let secret = bootstrap.token.clone().filter(|token| !token.expose_secret().is_empty())?;
        let scopes = bootstrap.scopes.as_deref().map_or_else(ScopeSet::all, ScopeSet::of_texts);
        Some(Self { secret, expires_at: bootstrap.expires_at, scopes })
    }
}

/// An invalid credential: the error code, and the identity to which the failure is charged in addition to the address.
pub(super) struct Failed {
    pub(super) code: ErrorCode,
    pub(super) identity: String,
    actor: Actor,
}

/// The reason why a credential is not accepted.
pub(super) enum CredentialRefusal {
    Failed(Failed),
    /// The credential could not be checked.
    Unjudged(ApiError),
}

impl From<StoreError> for CredentialRefusal {
    fn from(error: StoreError) -> Self {
        Self::Unjudged(error.into())
    }
}

impl Gate {
    pub(crate) fn new(parts: GateParts<'_>) -> Self {
        let GateParts { config, asks, store, clock, tokens } = parts;
        let limit = config.auth.failure_limit;
        let limits = FailureLimits {
            per_address: limit.per_address,
            per_identity: limit.per_identity,
            interval: limit.interval,
        };
        Self {
            asks,
            bootstrap: BootstrapToken::from_config(&config.auth.bootstrap),
            limiter: Limiter::new(limits, store.clone(), Arc::clone(&clock)),
            store,
            clock,
            tokens,
            tokens_stored: Mutex::new(None),
        }
    }

    /// Returns the principal for this credential and address.
    pub(in crate::http) async fn judge(
        &self,
        credential: Credential<'_>,
        address: IpAddr,
    ) -> ApiResult<Principal> {
        if self.asks == Asks::Nobody {
            return Ok(Principal::open());
        }
        let token = match credential {
            Credential::None if self.asks_everybody().await? => {
                return Err(ApiError::new(ErrorCode::MissingToken));
            }
            Credential::None => return Ok(Principal::open()),
            Credential::OtherScheme => return Err(ApiError::new(ErrorCode::InvalidScheme)),
            Credential::Bearer(token) => Some(token),
            Credential::Unreadable => None,
        };
        self.limiter.check_address(address).await?;
        let judged = match token {
            Some(token) => {
                self.limiter.check_identity(&token_key(&token))?;
                self.principal_of(&token).await
            }
            None => Err(invalid(format!("unreadable:{address}"))),
        };
        match judged {
            Ok((principal, identity)) => {
                self.limiter.check_identity(&identity)?;
                Ok(principal)
            }
            Err(CredentialRefusal::Unjudged(error)) => Err(error),
            Err(CredentialRefusal::Failed(Failed { code, identity, actor })) => {
                Err(self.limiter.failed(code, address, &identity, actor).await)
            }
        }
    }

    /// Re-checks an admitted caller with the token that they presented then. Counts no failure, since this is not an
    /// attempt.
    pub(super) async fn judge_again(&self, token: Option<&str>) -> ApiResult<Principal> {
        if self.asks == Asks::Nobody {
            return Ok(Principal::open());
        }
        let Some(token) = token else {
            let closed = self.asks_everybody().await?;
            return if closed { Err(ApiError::new(ErrorCode::MissingToken)) } else { Ok(Principal::open()) };
        };
        match self.principal_of(token).await {
            Ok((principal, _)) => Ok(principal),
            Err(CredentialRefusal::Unjudged(error)) => Err(error),
            Err(CredentialRefusal::Failed(failed)) => Err(ApiError::new(failed.code)),
        }
    }

    /// The failure limiter, shared with other sign-in paths such as chat sessions.
    pub(in crate::http) fn limiter(&self) -> &Limiter {
        &self.limiter
    }

    /// Whether a request without a credential is refused.
    async fn asks_everybody(&self) -> ApiResult<bool> {
        match self.asks {
            Asks::Nobody | Asks::WhoGivesOne => Ok(false),
            Asks::Everybody => Ok(true),
            Asks::EverybodyOnceThereAreTokens => {
                let now = self.clock.monotonic();
                let known = *self.tokens_stored.lock();
                if let Some((at, there)) = known
                    && now.saturating_sub(at) < TOKENS_KNOWN_FOR
                {
                    return Ok(there);
                }
                let there = self.store.has_active_service_token().await?;
                *self.tokens_stored.lock() = Some((now, there));
                Ok(there)
            }
        }
    }

    /// Whether the first service token would enable authentication.
    ///
    /// # Errors
    /// If the database does not answer.
    pub(in crate::http) async fn awaits_first_token(&self) -> ApiResult<bool> {
        let awaits = matches!(self.asks, Asks::EverybodyOnceThereAreTokens);
        Ok(awaits && !self.store.has_active_service_token().await?)
    }

    /// Clears the cache after a service token was created or revoked here, so the next request sees the change.
    pub(in crate::http) fn tokens_changed(&self) {
        *self.tokens_stored.lock() = None;
    }

    async fn principal_of(&self, token: &str) -> Result<(Principal, String), CredentialRefusal> {
        let digest = TokenDigest::from_token(token);
        let identity = token_key(token);
        if let Some(bootstrap) = &self.bootstrap
            && service_token::is_same(token, &bootstrap.secret)
        {
            let principal = Principal::bootstrap(bootstrap.scopes);
            if bootstrap.expires_at.is_some_and(|at| at <= self.clock.now()) {
                let (code, actor) = (ErrorCode::TokenExpired, principal.actor().clone());
                return Err(CredentialRefusal::Failed(Failed { code, identity, actor }));
            }
            return Ok((principal, identity));
        }
        if token.matches('.').count() >= 2 {
            return self.bearer_of_jwt(token).await;
        }
        let (token, secret_until) = match self.store.service_token_of(&digest).await? {
            TokenLookup::Unknown => return Err(invalid(identity)),
            TokenLookup::Revoked(id) => {
                let (code, actor) = (ErrorCode::InvalidToken, Actor::service_token(id));
                return Err(CredentialRefusal::Failed(Failed { code, identity, actor }));
            }
            TokenLookup::Known { token, secret_until } => (token, secret_until),
        };
        let now = self.clock.now();
        if token.expires_at.into_iter().chain(secret_until).any(|until| until <= now) {
            let (code, actor) = (ErrorCode::TokenExpired, Actor::service_token(token.id));
            return Err(CredentialRefusal::Failed(Failed { code, identity, actor }));
        }
        self.store.service_token_used(&token).await?;
        Ok((principal_of(&token, digest), identity))
    }

    async fn bearer_of_jwt(&self, token: &str) -> Result<(Principal, String), CredentialRefusal> {
        let claims = self.claims_of(token).await?;
        let identity = subject_key(&claims.subject);
        if let Some((user, _)) = self.signed_in_here(&claims).await? {
            return Ok((Principal::user(user.id, self.roles_of(user.id).await?), identity));
        }
        let workspaces = match claims.workspaces {
            Workspaces::Unrestricted => None,
            Workspaces::Only(workspaces) => Some(workspaces),
        };
        Ok((Principal::jwt(&claims.subject, ScopeSet::of_texts(&claims.scopes), workspaces), identity))
    }

    /// Returns the user and the sign-in session that issued this token.
    pub(super) async fn person_of(&self, token: &str) -> Result<(StoredUser, Uuid), CredentialRefusal> {
        let claims = self.claims_of(token).await?;
        let person = self.signed_in_here(&claims).await?;
        person.ok_or_else(|| invalid(subject_key(&claims.subject)))
    }

    /// Returns a valid token's claims. Failures count against a subject only after the signature is verified, so a
    /// caller cannot lock out another.
    async fn claims_of(&self, token: &str) -> Result<Claims, CredentialRefusal> {
        match self.tokens.access.verify(token, self.clock.now()).await {
            Ok(claims) => Ok(claims),
            Err(refused) if refused.why == Refusal::KeyUnavailable => {
                Err(CredentialRefusal::Unjudged(ApiError::new(ErrorCode::KeyUnavailable)))
            }
            Err(refused) => {
                let code = code_of(refused.why);
                let (identity, actor) = match refused.subject {
                    Some(subject) => (subject_key(&subject), Actor { kind: "jwt", id: Some(subject) }),
                    None => (token_key(token), Actor::ANONYMOUS),
                };
                Err(CredentialRefusal::Failed(Failed { code, identity, actor }))
            }
        }
    }

    /// Returns the user with a live sign-in session here; `None` if the token was issued elsewhere.
    async fn signed_in_here(&self, claims: &Claims) -> Result<Option<(StoredUser, Uuid)>, CredentialRefusal> {
        let Some((user, session)) = self.tokens.own.read(claims) else { return Ok(None) };
        let live = self.store.live_session(session).await?.filter(|live| live.id == user);
        let live = live.ok_or_else(|| invalid(subject_key(&claims.subject)))?;
        Ok(Some((live, session)))
    }

    /// Returns the principal of a signed-in user with their current roles.
    pub(super) async fn user(&self, user: Uuid) -> ApiResult<Principal> {
        Ok(Principal::user(user, self.roles_of(user).await?))
    }

    /// Returns the user's current role in each workspace.
    async fn roles_of(&self, user: Uuid) -> Result<BTreeMap<Uuid, Role>, StoreError> {
        let places = self.store.memberships(user).await?.into_iter();
        let roles = places.filter_map(|place| Some((place.workspace_id, Role::parse(&place.role)?)));
        Ok(roles.collect())
    }
}

/// Maps a token refusal to its error code.
fn code_of(refusal: Refusal) -> ErrorCode {
    match refusal {
        Refusal::Invalid => ErrorCode::InvalidToken,
        Refusal::Expired => ErrorCode::TokenExpired,
        Refusal::UnsupportedAlgorithm => ErrorCode::UnsupportedAlgorithm,
        Refusal::InvalidAudience => ErrorCode::InvalidAudience,
        Refusal::InvalidIssuer => ErrorCode::InvalidIssuer,
        Refusal::KeyUnavailable => ErrorCode::KeyUnavailable,
    }
}

fn principal_of(token: &StoredServiceToken, secret: TokenDigest) -> Principal {
    let scopes = ScopeSet::of_texts(&token.scopes);
    Principal::service_token(token.id, secret, scopes, token.workspaces.clone())
}

/// The failure key for an unidentified token.
pub(in crate::http) fn token_key(token: &str) -> String {
    format!("token:{}", hex::encode(TokenDigest::from_token(token).as_bytes()))
}

fn subject_key(subject: &str) -> String {
    format!("subject:{subject}")
}

fn invalid(identity: String) -> CredentialRefusal {
    CredentialRefusal::Failed(Failed { code: ErrorCode::InvalidToken, identity, actor: Actor::ANONYMOUS })
}
