//! The `Idempotency-Key` for a run start or a new record, and the principal that owns it.

use actix_web::HttpRequest;
use actors::kinds::app::AppKey;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use store::RequestKey;
use uuid::Uuid;
use wire::ErrorCode;

use super::cookie::{self, NewCookie};
use super::error::AliasResult;
use super::visitor::Visitor;
use crate::http::error::ApiResult;
use crate::http::idempotency;

/// The principal that owns a key.
pub(super) enum Principal {
    /// A signed-in member.
    Member(Uuid),
    /// A visitor with a genuine cookie, by its SHA-256.
    Visitor(Vec<u8>),
    /// A visitor without a cookie: the client's network, and the cookie that the response sets. A retry with or without
    /// that cookie finds the result of the first request.
    Network(String, NewCookie),
}

impl Principal {
    pub(super) fn for_request(visitor: &Visitor, request: &HttpRequest) -> ApiResult<Self> {
        if let Some(member) = &visitor.member {
            return Ok(Self::Member(member.user));
        }
        match cookie::read(visitor, request) {
            Some(known) => Ok(Self::Visitor(known)),
            None => Ok(Self::Network(visitor.network.to_string(), cookie::new(visitor)?)),
        }
    }

    /// The visitor cookie's SHA-256.
    pub(super) fn visitor(&self) -> Option<Vec<u8>> {
        match self {
            Self::Member(_) => None,
            Self::Visitor(digest) => Some(digest.clone()),
            Self::Network(_, cookie) => Some(cookie.stored()),
        }
    }

    /// The cookie that the response sets.
    pub(super) fn into_cookie(self) -> Option<NewCookie> {
        match self {
            Self::Member(_) | Self::Visitor(_) => None,
            Self::Network(_, cookie) => Some(cookie),
        }
    }

    /// The key scopes for one operation; the first decides whether a key is known.
    fn scopes(&self, of: &str) -> Vec<String> {
        let scope = |principal: String| format!("{of}|{principal}");
        let of_visitor = |digest: &[u8]| scope(format!("visitor:{}", hex::encode(digest)));
        match self {
            Self::Member(user) => vec![scope(format!("member:{user}"))],
            Self::Visitor(digest) => vec![of_visitor(digest)],
            Self::Network(network, cookie) => {
                vec![scope(format!("network:{network}")), of_visitor(&cookie.stored())]
            }
        }
    }

    /// The key for a run start.
    pub(super) fn key(&self, app: Uuid, binding: &str, key: String, input: &Value) -> AppKey {
        let scopes = self.scopes(&format!("app|{app}|{binding}"));
        AppKey { scopes, key, digest: fingerprint(binding, input) }
    }

    /// The key for a new record.
    pub(super) fn record_key(&self, app: Uuid, collection: Uuid, key: String, data: &Value) -> RequestKey {
        let scopes = self.scopes(&format!("records|{app}|{collection}"));
        RequestKey { scopes, key, digest: fingerprint(&collection.to_string(), data) }
    }
}

/// The request's key, if any.
pub(super) fn optional(request: &HttpRequest) -> AliasResult<Option<String>> {
    Ok(idempotency::key(request).map_err(|_| ErrorCode::AppIdempotencyKeyInvalid)?)
}

/// The request's key, which is required.
pub(super) fn header(request: &HttpRequest) -> AliasResult<String> {
    Ok(optional(request)?.ok_or(ErrorCode::IdempotencyKeyRequired)?)
}

/// A fingerprint that requests with the same key must share. Integers beyond 2^53 have no canonical form and are
/// compared as written.
fn fingerprint(of: &str, body: &Value) -> Vec<u8> {
    let request = json!(["POST", of, body]);
    match engine::digest(&request) {
        Ok(digest) => digest.to_vec(),
        Err(_) => digest(&SHA256, request.to_string().as_bytes()).as_ref().to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fingerprint_does_not_depend_on_the_spelling() {
        let of = |text: &str| fingerprint("form", &serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":"é"}"#), of(r#"{ "b": "\u00e9", "a": 1.0 }"#));
        assert_ne!(of(r#"{"a":1}"#), of(r#"{"a":"1"}"#));
        assert_ne!(of(r#"{"a":9007199254740993}"#), of(r#"{"a":9007199254740994}"#));
        assert_ne!(fingerprint("form", &json!({})), fingerprint("other", &json!({})));
    }
}
