//! Tokens as other issuers would make them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use integration_tests::{AnswerExt, Client, JSON, Mail, MailServer, TestService, until};
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

/// Signs any header and claims with any secret.
pub(super) fn sign(header: &Value, claims: &Value, secret: &str) -> String {
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(header), encode(claims));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes()), signed.as_bytes());
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(tag))
}

/// A Unix timestamp this many seconds from now.
pub(super) fn seconds_from_now(seconds: i64) -> i64 {
    SystemClock::new().now().timestamp() + seconds
}

/// A valid token for this subject with these scopes.
pub(super) fn good_jwt(subject: &str, scopes: &str) -> String {
    jwt(&json!({"sub": subject, "exp": seconds_from_now(600), "scope": scopes}))
}

/// A second workspace.
pub(super) async fn other_workspace(t: &TestService) {
    t.root().post("/api/workspaces", &json!({"slug": "other", "name": "Other"})).await.expect(201);
}

/// The access token after a sign-in by mail.
pub(crate) async fn sign_in(t: &TestService, mail: &MailServer, email: &str) -> String {
    signed_in(&t.visitor(), mail, email).await["access_token"].as_str().unwrap().to_owned()
}

/// A browser after a sign-in by mail.
pub(crate) async fn browser(t: &TestService, mail: &MailServer, email: &str) -> Client {
    let browser = t.visitor();
    signed_in(&browser, mail, email).await;
    browser
}

async fn signed_in(client: &Client, mail: &MailServer, email: &str) -> Value {
    let (before, origin) = (mail.mails().len(), client.base().trim_end_matches('/').to_owned());
    let headers = [JSON, ("origin", origin.as_str())];
    let post =
        async |path: &str, body: Value| client.send("POST", path, &headers, body.to_string()).await.unwrap();
    post("/api/auth/email/start", json!({"email": email})).await;
    // An invitation may arrive in between.
    let is_code = |mail: &&Mail| mail.to == [email] && mail.header("subject").unwrap().starts_with("Sign in");
    let found = || mail.mails().iter().skip(before).find(is_code).map(Mail::code);
    until("a code in the mail", async || found().is_some()).await;
    post("/api/auth/email/verify", json!({"email": email, "code": found()})).await.expect(200).value()
}
