//! The workflow websocket: handshake, messages, and close.

mod bounds;
mod handshake;
mod messages;
mod reading;
mod running;
mod secrecy;

use integration_tests::{Answer, AnswerExt, Client, TestService, Workflow};
use serde_json::{Value, json};

/// The bootstrap token.
const ADMIN: &str = "bootstrap-token-of-the-websocket-tests-0123456789";
/// The signing secret for access tokens.
const SECRET: &str = "secret-of-the-access-tokens-of-these-tests-0123";

/// A service that requires a credential from every caller.
fn guarded() -> integration_tests::Builder {
    TestService::builder()
        .set("SERVICE_AUTH_MODE", "required")
        .set("SERVICE_AUTH_BOOTSTRAP_SERVICE_TOKEN", ADMIN)
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
}

/// A client with all rights on a guarded service.
fn admin(t: &TestService) -> Client {
    Client::builder(t.client().base()).service_token(ADMIN.to_owned().into()).build().unwrap()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Calls a guarded service's API.
async fn call(t: &TestService, method: &str, path: &str, body: &Value) -> Value {
    let bearer = bearer(ADMIN);
    let headers = [("authorization", bearer.as_str()), ("content-type", "application/json")];
    let answer = t.send(method, path, &headers, body.to_string()).await;
    assert!(answer.is_success(), "{}", answer.text());
    if answer.status == 204 { Value::Null } else { answer.value() }
}

/// A service token with these scopes: its id and its secret.
async fn token(t: &TestService, body: Value) -> (String, String) {
    let made = call(t, "POST", "/api/admin/service-tokens", &body).await;
    (made["id"].as_str().unwrap().to_owned(), made["secret"].as_str().unwrap().to_owned())
}

/// A handshake that the service rejects.
async fn refused(t: &TestService, path: &str, headers: &[(&str, &str)]) -> Answer {
    let answer = handshake(t, path, headers).await;
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{}", answer.text());
    answer
}

/// A handshake by hand, for requests that no library sends.
async fn handshake(t: &TestService, path: &str, headers: &[(&str, &str)]) -> Answer {
    let mut all = vec![
        ("upgrade", "websocket"),
        ("connection", "Upgrade"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    all.extend_from_slice(headers);
    t.raw().await.request("GET", path, &all, "").await.whole().await
}

/// Starts a run and returns its id.
async fn begin(t: &TestService, workflow: &Workflow) -> String {
    let begun = t.post(&format!("/api/workflows/{}/runs", workflow.id), "{}").await;
    assert_eq!(begun.status, 202, "{}", begun.text());
    begun.value()["id"].as_str().unwrap().to_owned()
}

fn subscribe(run: &str, after: u64) -> Value {
    json!({"type": "subscribe", "run_id": run, "after_seq": after})
}
