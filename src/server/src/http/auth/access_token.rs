//! Access tokens of our own sign-ins.

use auth::sign_in::ACCESS_LIFE;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::http::App;
use crate::http::error::ApiResult;

/// Signs them.
pub(crate) struct AccessKey(hmac::Key);

impl AccessKey {
    /// Under this key.
    pub(crate) fn new(key: &[u8]) -> Self {
        Self(hmac::Key::new(hmac::HMAC_SHA256, key))
    }
}

/// A token for whoever signed in, good for a quarter of an hour and as long as the session.
pub(super) fn issue(app: &App, user: Uuid, session: Uuid) -> ApiResult<String> {
    let now = app.clock().now();
    let claims = json!({
        "iss": app.config().auth.issuer.as_deref().unwrap_or("callboard"),
        "sub": user, "sid": session, "jti": app.ids().uuid()?, "token_use": "user",
        "iat": now.timestamp(), "exp": (now + ACCESS_LIFE).timestamp(),
    });
    let head = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "typ": "JWT"}).to_string());
    let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let tag = hmac::sign(&app.sign_in().access.0, signed.as_bytes());
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag)))
}

/// The session that a token of ours names.
pub(super) fn session_of(app: &App, token: &str) -> Option<Uuid> {
    let (signed, tag) = token.rsplit_once('.')?;
    let tag = URL_SAFE_NO_PAD.decode(tag).ok()?;
    hmac::verify(&app.sign_in().access.0, signed.as_bytes(), &tag).ok()?;
    let claims = URL_SAFE_NO_PAD.decode(signed.split_once('.')?.1).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    let live =
        claims.get("exp").and_then(Value::as_i64).is_some_and(|exp| app.clock().now().timestamp() < exp);
    claims.get("sid").and_then(Value::as_str).filter(|_| live).and_then(|sid| Uuid::parse_str(sid).ok())
}
