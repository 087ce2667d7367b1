//! Tokens as somebody else would make them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use integration_tests::TestService;
use kernel::{Clock, SystemClock};
use ring::hmac;
use serde_json::{Value, json};

/// SERVICE_AUTH_JWT_SECRET of these tests.
pub(super) const SECRET: &str = "jwt-secret-0123456789abcdef0123456789abcdef";
/// CHAT_TOKEN_SIGNING_KEY of these tests.
pub(super) const CHAT_KEY: &str = "chat-key-0123456789abcdef0123456789abcdef";

/// An HS256 token with these claims.
pub(super) fn jwt(claims: &Value) -> String {
    sign(&json!({"alg": "HS256", "typ": "JWT"}), claims, SECRET)
}

/// Any header, any claims, any secret.
pub(super) fn sign(header: &Value, claims: &Value, secret: &str) -> String {
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(header), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// Seconds since 1970, from now on.
pub(super) fn seconds_from_now(seconds: i64) -> i64 {
    SystemClock::new().now().timestamp() + seconds
}

/// A good token of this subject with these scopes.
pub(super) fn good_jwt(subject: &str, scopes: &str) -> String {
    jwt(&json!({"sub": subject, "exp": seconds_from_now(600), "scope": scopes}))
}

/// A second workspace, made beside the service.
pub(super) async fn other_workspace(t: &TestService) {
    t.execute(
        "INSERT INTO workspaces (id, slug, name, created_at) VALUES (gen_random_uuid(), 'other', 'Other', now())",
    )
    .await;
}
