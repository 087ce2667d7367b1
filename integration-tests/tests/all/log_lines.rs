//! Log lines that callers can cause.

use client::Client;
use integration_tests::{graphs, until};
use serde_json::json;
use store::testing::TestDatabase;

use crate::crash::service::Service;

#[tokio::test]
async fn callers_cause_at_most_one_warning_per_code_and_minute_and_no_errors() {
    let database = TestDatabase::create().await;
    let folder = tempfile::tempdir().unwrap();
    let mut service = Service::new(folder.path(), Some(database.dsn()));
    service.start();
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    until("the service to be ready", async || {
        client.send("GET", "/readyz", &[], "").await.is_ok_and(|answer| answer.status == 200)
    })
    .await;
    let headers = [("content-type", "application/json")];
    let secret = json!({"name": "key", "secret": "value"}).to_string();
    for _ in 0..3 {
        let answer = client.send("POST", "/api/credentials", &headers, secret.clone()).await.unwrap();
        assert_eq!(answer.status, 503, "no vault key is configured");
    }
    let log = json!({"name": "note", "type": "log", "message": "said by a caller", "level": "error"});
    let graph = graphs::chain(&[log], None);
    for (path, body) in [
        ("/api/workflows", json!({"name": "loud"})),
        ("/api/workflows/loud/versions", json!({"graph": graph})),
        ("/api/workflows/loud/runs", json!({})),
    ] {
        let answer = client.send("POST", path, &headers, body.to_string()).await.unwrap();
        assert!(matches!(answer.status, 201 | 202), "{path}: {}", answer.text());
    }
    let mut lines = String::new();
    until("the log line of the run", async || {
        lines = service.logged();
        lines.contains("said by a caller")
    })
    .await;
    assert!(!lines.contains(" ERROR "), "{lines}");
    let warned =
        |text: &str| lines.lines().filter(|line| line.contains(" WARN ") && line.contains(text)).count();
    assert_eq!((warned("vault.key_missing"), warned("said by a caller")), (1, 1), "{lines}");
    service.stop();
}
