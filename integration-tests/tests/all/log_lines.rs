//! Log lines that callers can cause.

use client::Client;
use integration_tests::{JSON, Provider, graphs, until};
use serde_json::json;
use store::testing::TestDatabase;

use crate::crash::service::Service;

#[tokio::test]
async fn callers_cause_at_most_one_warning_per_code_and_minute_and_no_errors() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    let provider = Provider::start().await;
    for (name, value) in provider.variables() {
        service.set(name, value);
    }
    service.set("SERVICE_AUTH_RATE_LIMIT_IP", "0".to_owned());
    service.start();
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    until("the service to be ready", async || {
        client.send("GET", "/readyz", &[], "").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let secret = json!({"name": "key", "secret": "value"}).to_string();
    for _ in 0..3 {
        let answer = client.send("POST", "/api/credentials", &[JSON], secret.clone()).await.unwrap();
        assert_eq!(answer.status, 503, "no vault key is configured");
    }
    provider.be(|knobs| knobs.back = vec![("iss", "https://evil.example".to_owned())]);
    let browser = Client::builder(&service.base()).build().unwrap();
    for _ in 0..3 {
        let there = browser.send("GET", "/api/auth/oidc/start", &[], "").await.unwrap();
        let way = provider.visit(there.header("location").unwrap()).await;
        assert_eq!(browser.send("GET", &way.back, &[], "").await.unwrap().status, 401);
    }
    let log = json!({"name": "note", "type": "log", "message": "said by a caller", "level": "error"});
    let graph = graphs::chain(&[log], None);
    for (path, body) in [
        ("/api/workflows", json!({"name": "loud"})),
        ("/api/workflows/loud/versions", json!({"graph": graph})),
        ("/api/workflows/loud/runs", json!({})),
        ("/api/workflows/loud/runs", json!({})),
    ] {
        let answer = client.send("POST", path, &[JSON], body.to_string()).await.unwrap();
        assert!(matches!(answer.status, 201 | 202), "{path}: {}", answer.text());
    }
    let mut lines = String::new();
    // The lines of a workflow are its author's: each is logged.
    until("the log lines of the runs", async || {
        lines = service.logged();
        lines.matches("said by a caller").count() >= 2
    })
    .await;
    assert!(!lines.contains(" ERROR "), "{lines}");
    let warned =
        |text: &str| lines.lines().filter(|line| line.contains(" WARN ") && line.contains(text)).count();
    let counts = ["vault.key_missing", "OpenID sign-in rejected", "said by a caller"].map(warned);
    assert_eq!(counts, [1, 1, 2], "{lines}");
    service.stop();
}
