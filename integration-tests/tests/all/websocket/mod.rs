//! The workflow websocket: handshake, messages, and close.

mod bounds;
mod handshake;
mod messages;
mod reading;
mod running;
mod secrecy;

use integration_tests::{Answer, AnswerExt, BOOTSTRAP, Client, TestService, Workflow};
use serde_json::{Value, json};

/// The headers of a complete handshake.
pub(crate) const HANDSHAKE: [(&str, &str); 4] = [
    ("upgrade", "websocket"),
    ("connection", "Upgrade"),
    ("sec-websocket-version", "13"),
    ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
];

/// The signing secret for access tokens.
const SECRET: &str = "secret-of-the-access-tokens-of-these-tests-0123";

/// A service that requires a credential from every caller.
fn guarded() -> integration_tests::Builder {
    TestService::builder()
        .set("SERVICE_AUTH_MODE", "required")
        .with_bootstrap_token()
        .set("SERVICE_AUTH_JWT_SECRET", SECRET)
}

/// A client with all rights on a guarded service.
fn admin(t: &TestService) -> Client {
    Client::builder(t.client().base()).service_token(BOOTSTRAP.to_owned().into()).build().unwrap()
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Calls a guarded service's API.
async fn call(t: &TestService, method: &str, path: &str, body: &Value) -> Value {
    let answer = t.root().json(method, path, body).await;
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
    t.raw().await.request("GET", path, &[&HANDSHAKE[..], headers].concat(), "").await.whole().await
}

/// Starts a run and returns its id.
async fn begin(t: &TestService, workflow: &Workflow) -> String {
    t.post(&workflow.path("/runs"), "{}").await.expect(202).member("id")
}

fn subscribe(run: &str, after: u64) -> Value {
    json!({"type": "subscribe", "run_id": run, "after_seq": after})
}
