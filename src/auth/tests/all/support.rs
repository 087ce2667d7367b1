//! Handmade tokens, so that they can be wrong in every way.

use std::sync::Arc;

use auth::jwt::jwks::{CachedKeys, KeySet};
use auth::jwt::{AccessRules, AccessTokens, Algorithm, Claims, HmacSecret, Refusal, RejectedToken};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use ring::hmac;
use serde_json::{Value, json};

use crate::rsa::RsaPair;

pub(crate) const SECRET: &str = "the secret of the tests, 32 bytes";
pub(crate) const NOW: i64 = 1_800_000_000;
pub(crate) const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

pub(crate) fn now() -> DateTime<Utc> {
    at(NOW)
}

pub(crate) fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

pub(crate) fn secret(text: &str) -> HmacSecret {
    HmacSecret::of_bytes(text.as_bytes()).unwrap()
}

pub(crate) fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Header and payload, as signed.
pub(crate) fn unsigned(header: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> String {
    format!("{}.{}", encode(header), encode(payload))
}

/// Any text followed by its HMAC.
pub(crate) fn sealed(secret: &[u8], text: &str) -> String {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), text.as_bytes());
    format!("{text}.{}", encode(tag))
}

pub(crate) fn signed(header: impl AsRef<[u8]>, payload: impl AsRef<[u8]>) -> String {
    sealed(SECRET.as_bytes(), &unsigned(header, payload))
}

/// Valid claims with changes: a `null` member is left out.
pub(crate) fn payload(changes: Value) -> String {
    let mut claims = json!({"sub": "ada", "exp": NOW + 60});
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            claims.as_object_mut().unwrap().remove(name);
        } else {
            claims[name] = value.clone();
        }
    }
    claims.to_string()
}

pub(crate) fn token(changes: Value) -> String {
    signed(HS256, payload(changes))
}

/// Both algorithms, the test secret, and the RFCs' first key as `one`.
pub(crate) fn rules() -> AccessRules {
    AccessRules {
        algorithms: vec![Algorithm::Rs256, Algorithm::Hs256],
        secret: Some(secret(SECRET)),
        first_party: None,
        keys: Some(Arc::new(CachedKeys::new(set(&[RsaPair::first().jwk(json!({"kid": "one"}))]), None))),
        audience: Vec::new(),
        issuer: None,
    }
}

pub(crate) fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({"keys": keys}).to_string().as_bytes()).unwrap()
}

pub(crate) async fn judge(rules: AccessRules, token: &str) -> Result<Claims, RejectedToken> {
    AccessTokens::new(rules).verify(token, now()).await
}

/// The verdict according to [`rules`].
pub(crate) async fn verdict(token: &str) -> Result<Claims, Refusal> {
    judge(rules(), token).await.map_err(|refused| refused.why)
}
