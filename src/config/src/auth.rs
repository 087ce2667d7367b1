//! Authentication: modes, keys, tokens and failure limits.

use std::num::NonZeroU32;
use std::time::Duration;

use auth::scope::Scope;
use chrono::{DateTime, Utc};
use kernel::Secret;
use serde_json::Value;
use url::Url;

use crate::problem::Invalid;
use crate::reader::{RejectedValue, VariableReader};
use crate::{address, parse};

/// Request authentication.
#[derive(Debug, Clone)]
pub struct Auth {
    /// `SERVICE_AUTH_MODE`; `None`: configured credentials decide.
    pub mode: Option<AuthMode>,
    /// `SERVICE_AUTH_JWT_SECRET`: HS256, raw bytes.
    pub jwt_secret: Option<Secret>,
    /// Key sets for RS256.
    pub jwks: Jwks,
    /// `SERVICE_AUTH_ALLOWED_ALGORITHMS`, never empty.
    pub allowed_algorithms: Vec<Algorithm>,
    /// `SERVICE_AUTH_AUDIENCE`: any of these; empty: unchecked.
    pub audience: Vec<String>,
    /// `SERVICE_AUTH_ISSUER`; `None`: unchecked.
    pub issuer: Option<String>,
    /// The token from the environment.
    pub bootstrap: Bootstrap,
    /// Limits for failed sign-ins.
    pub failure_limit: FailureLimit,
}

/// `SERVICE_AUTH_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuthMode {
    /// No caller is authenticated.
    Disabled,
    /// Credentials are checked if presented.
    Optional,
    /// Every request must carry valid credentials.
    Required,
}

/// A signature algorithm for access tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with SHA-256, keys from a key set.
    Rs256,
    /// HMAC with SHA-256, key from `SERVICE_AUTH_JWT_SECRET`.
    Hs256,
}

/// An identity provider's key sets.
#[derive(Debug, Clone)]
pub struct Jwks {
    /// `SERVICE_AUTH_JWKS_URL`.
    pub url: Option<Url>,
    /// `SERVICE_AUTH_JWKS_STATIC` or `SERVICE_AUTH_JWKS`.
    pub static_keys: Option<StaticJwks>,
    /// `SERVICE_AUTH_JWKS_CACHE_TTL`.
    pub cache_ttl: Duration,
    /// `SERVICE_AUTH_JWKS_TIMEOUT`.
    pub timeout: Duration,
}

/// A key set in the configuration itself.
#[derive(Debug, Clone, PartialEq)]
pub struct StaticJwks {
    /// The variable that contains it.
    pub variable: &'static str,
    /// `{"keys": [...]}`: objects with `kty`, at least one, none private.
    pub set: Value,
}

/// The bootstrap token.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    /// `SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN`.
    pub token: Option<Secret>,
    /// `SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT`.
    pub expires_at: Option<DateTime<Utc>>,
    /// `SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES`; `None`: every scope.
    pub scopes: Option<Vec<String>>,
}

/// Failed sign-ins within a sliding window; `None` disables a limit.
#[derive(Debug, Clone, Copy)]
pub struct FailureLimit {
    /// `SERVICE_AUTH_RATE_LIMIT_IP`.
    pub per_address: Option<NonZeroU32>,
    /// `SERVICE_AUTH_RATE_LIMIT_IDENTITY`.
    pub per_identity: Option<NonZeroU32>,
    /// `SERVICE_AUTH_RATE_LIMIT_INTERVAL`.
    pub interval: Duration,
}

impl Auth {
    /// The first variable that configures a credential. If the mode is unset, any credential means "required".
    #[must_use]
    pub fn credential_configured(&self) -> Option<&'static str> {
        let jwt = self.jwt_secret.as_ref().map(|_| "SERVICE_AUTH_JWT_SECRET");
        let url = || self.jwks.url.as_ref().map(|_| "SERVICE_AUTH_JWKS_URL");
        let keys = || self.jwks.static_keys.as_ref().map(|keys| keys.variable);
        let bootstrap = || self.bootstrap.token.as_ref().map(|_| "SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN");
        jwt.or_else(url).or_else(keys).or_else(bootstrap)
    }
}

pub(crate) fn read(reader: &mut VariableReader<'_>) -> Result<Auth, RejectedValue> {
    let modes = [
        ("disabled", AuthMode::Disabled),
        ("optional", AuthMode::Optional),
        ("required", AuthMode::Required),
    ];
    let mode = reader.optional("SERVICE_AUTH_MODE", parse::choice(&modes));
    let backend = reader.value("SERVICE_AUTH_SERVICE_TOKEN_BACKEND", parse::choice(&[("postgres", ())]));
    let jwt_secret = reader.secret("SERVICE_AUTH_JWT_SECRET", parse::any_secret);
    let jwks = read_jwks(reader);
    let allowed_algorithms = reader.value("SERVICE_AUTH_ALLOWED_ALGORITHMS", algorithms);
    let audience = reader.optional("SERVICE_AUTH_AUDIENCE", parse::comma_list);
    let issuer = reader.optional("SERVICE_AUTH_ISSUER", parse::line);
    let bootstrap = read_bootstrap(reader);
    let per_address = reader.value("SERVICE_AUTH_RATE_LIMIT_IP", parse::limit);
    let per_identity = reader.value("SERVICE_AUTH_RATE_LIMIT_IDENTITY", parse::limit);
    let interval = reader.value("SERVICE_AUTH_RATE_LIMIT_INTERVAL", parse::seconds(1..=86400));
    // There is only one backend, so its name is checked but not stored.
    backend?;
    Ok(Auth {
        mode: mode?,
        jwt_secret: jwt_secret?,
        jwks: jwks?,
        allowed_algorithms: allowed_algorithms?,
        audience: audience?.unwrap_or_default(),
        issuer: issuer?,
        bootstrap: bootstrap?,
        failure_limit: FailureLimit {
            per_address: per_address?,
            per_identity: per_identity?,
            interval: interval?,
        },
    })
}

fn read_bootstrap(reader: &mut VariableReader<'_>) -> Result<Bootstrap, RejectedValue> {
    let token = reader.secret("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", parse::header_secret);
    let expires_at = reader.optional("SERVICE_AUTH_BOOTSTRAP_TOKEN_EXPIRES_AT", parse::instant);
    let scopes = reader.optional("SERVICE_AUTH_BOOTSTRAP_TOKEN_SCOPES", scopes);
    Ok(Bootstrap { token: token?, expires_at: expires_at?, scopes: scopes? })
}

fn read_jwks(reader: &mut VariableReader<'_>) -> Result<Jwks, RejectedValue> {
    let url = reader.optional("SERVICE_AUTH_JWKS_URL", address::trusted_url);
    let cache_ttl = reader.value("SERVICE_AUTH_JWKS_CACHE_TTL", parse::seconds(1..=86400));
    let timeout = reader.value("SERVICE_AUTH_JWKS_TIMEOUT", parse::decimal_seconds(0.1..=60.0));
    let first = reader.optional("SERVICE_AUTH_JWKS_STATIC", key_set);
    let second = reader.optional("SERVICE_AUTH_JWKS", key_set);
    let static_keys = match (first?, second?) {
        (Some(first), Some(second)) if first != second => {
            reader.refuse("SERVICE_AUTH_JWKS", "differs from SERVICE_AUTH_JWKS_STATIC", "set one of the two");
            return Err(RejectedValue);
        }
        (Some(set), _) => Some(StaticJwks { variable: "SERVICE_AUTH_JWKS_STATIC", set }),
        (None, Some(set)) => Some(StaticJwks { variable: "SERVICE_AUTH_JWKS", set }),
        (None, None) => None,
    };
    Ok(Jwks { url: url?, static_keys, cache_ttl: cache_ttl?, timeout: timeout? })
}

fn algorithms(text: &str) -> Result<Vec<Algorithm>, Invalid> {
    parse::words(text)?
        .iter()
        .map(|word| match word.as_str() {
            "RS256" => Ok(Algorithm::Rs256),
            "HS256" => Ok(Algorithm::Hs256),
            _ => Err(Invalid::new("names an algorithm that is not supported", "write RS256, HS256 or both")),
        })
        .collect()
}

/// Parses a scope list. An unknown scope would silently grant nothing.
fn scopes(text: &str) -> Result<Vec<String>, Invalid> {
    let scopes = parse::words(text)?;
    match scopes.iter().find(|scope| Scope::parse(scope).is_none()) {
        None => Ok(scopes),
        Some(unknown) => {
            let known: Vec<&str> = Scope::ALL.iter().map(|scope| scope.as_str()).collect();
            Err(Invalid::new(
                format!("names {unknown:?}, which is not a scope"),
                format!("write one or more of {}, or a JSON list of them", known.join(", ")),
            ))
        }
    }
}

/// Parses a public key set. Problems never repeat it: it may be a private one by mistake.
fn key_set(text: &str) -> Result<Value, Invalid> {
    /// JWK members with private or symmetric material.
    const PRIVATE: [&str; 7] = ["d", "p", "q", "dp", "dq", "qi", "k"];
    let instead = r#"write JSON {"keys": [...]} with public keys"#;
    let refused = |wrong: &str| Err(Invalid::new(wrong, instead).hidden());
    let Ok(set) = serde_json::from_str::<Value>(text) else { return refused("is not JSON") };
    let Some(keys) = set.get("keys").and_then(Value::as_array) else {
        return refused("is not an object with a list `keys`");
    };
    if keys.is_empty() || keys.len() > 100 {
        return refused("has no key, or more than 100");
    }
    if keys.iter().any(|key| key.get("kty").and_then(Value::as_str).is_none()) {
        return refused("has a key without `kty`");
    }
    if keys.iter().any(|key| PRIVATE.iter().any(|member| key.get(member).is_some())) {
        return refused("has a private or symmetric key");
    }
    Ok(set)
}
