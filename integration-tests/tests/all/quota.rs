//! Workspace storage limits: a full workspace starts nothing new, and its existing work continues.

use integration_tests::{AnswerExt, JSON, TestService, chat, graphs, noise, until};
use serde_json::{Value, json};

const LIMIT: &str = "300000";

#[tokio::test]
async fn a_full_workspace_rejects_new_data_until_it_stores_less() {
    let mut t = TestService::builder()
        .with_bootstrap_token()
        .set("SERVICE_WORKSPACE_STORAGE_BYTES", LIMIT)
        .start()
        .await;
    t.measured().await;
    let echo = t.workflow().echo().published().create().await;
    let keep = json!({"name": "keep", "type": "index_upsert", "index": "i", "document": "d",
                      "chunks": [{"text": "words", "metadata": {}}]});
    let ask = json!({"name": "ask", "type": "wait_for_input", "key": "go", "message": "Go?"});
    let waits = t.workflow().named("Waits").graph(graphs::chain(&[ask, keep], None)).create().await;
    let root = t.root();
    assert_eq!(root.post("/api/workspaces", &json!({"slug": "other"})).await.status, 201);
    let waiting = root.post(&waits.path("/runs"), &json!({})).await.value();
    let waiting = format!("/api/runs/{}", waiting["id"].as_str().unwrap());
    until("the run waits", async || t.root().get(&waiting).await.value()["status"] == "waiting").await;

    let path = echo.path("/runs?wait=20");
    let body = json!({"inputs": {"message": noise(150_000)}});
    let begin = async |t: &TestService, key: &str| {
        let headers = [("idempotency-key", key), JSON];
        t.root().send("POST", &path, &headers, &body.to_string()).await
    };
    let first = begin(&t, "first").await.value();
    assert_eq!(first["status"], "succeeded", "{:.200}", first);
    t.measure().await;
    integration_tests::pause(700).await;
    assert_eq!(t.chat(&chat::create(&echo, "hi")).await.status, 200, "one measurement is not enough");
    t.measure().await;
    until("the workspace is full", async || t.chat(&chat::create(&echo, "hi")).await.status == 507).await;

    // Nothing new is accepted, and earlier requests are replayed.
    let refused = begin(&t, "second").await;
    assert_eq!(refused.refusal(), "507 workspace.storage_full");
    assert!(!refused.text().contains(LIMIT), "{}", refused.text());
    assert_eq!(begin(&t, "first").await.value()["id"], first["id"]);
    assert_eq!(t.chat(&chat::create(&echo, "hi")).await.refusal(), "507 workspace.storage_full");
    let graph = json!({"graph": graphs::reply("another")});
    // A started run continues, and fails only at a step that would store more.
    t.root().send("POST", &format!("{waiting}/inputs/go"), &[JSON], "\"yes\"").await;
    until("the run ends", async || t.root().get(&waiting).await.value()["status"] == "failed").await;
    let ended = t.root().get(&waiting).await.value();
    assert_eq!(
        (&ended["error"]["code"], &ended["error"]["node"]),
        (&json!("workspace.storage_full"), &json!("keep"))
    );
    // Another workspace has room.
    let other = [("x-workspace", "other"), JSON];
    let made = t.root().send("POST", "/api/workflows", &other, r#"{"name": "There"}"#).await.value();
    let there = format!("/api/workflows/{}", made["id"].as_str().unwrap());
    assert_eq!(
        t.root().send("POST", &format!("{there}/versions"), &other, &graph.to_string()).await.status,
        201
    );
    assert_eq!(t.root().send("POST", &format!("{there}/runs"), &other, "{}").await.status, 202);

    let storage = async |t: &TestService, slug: &str| -> Value {
        t.root().get(&format!("/api/workspaces/{slug}")).await.value()["storage"].clone()
    };
    let full = storage(&t, "default").await;
    assert!(full["bytes"].as_i64().unwrap() > 300_000 && full["limit"] == 300_000, "{full}");
    assert!(storage(&t, "other").await["bytes"].as_i64().unwrap() < 10_000);
    t.execute(&format!(
        "DELETE FROM run_steps; DELETE FROM runs WHERE id = '{}'",
        first["id"].as_str().unwrap()
    ))
    .await;
    t.execute("DELETE FROM stream_events").await;
    t.measure().await;
    until("the workspace has room", async || t.chat(&chat::create(&echo, "hi")).await.status == 200).await;
    assert_eq!(begin(&t, "second").await.value()["status"], "succeeded");
}

#[tokio::test]
async fn storage_is_measured_without_a_limit() {
    let mut t = TestService::builder().with_bootstrap_token().start().await;
    t.measured().await;
    let echo = t.workflow().echo().create().await;
    let path = echo.path("/runs?wait=20");
    t.root().post(&path, &json!({"inputs": {"message": noise(100_000)}})).await;
    t.measure().await;
    let storage = t.root().get("/api/workspaces/default").await.value()["storage"].clone();
    assert!(storage["bytes"].as_i64().unwrap() > 100_000 && storage["limit"].is_null(), "{storage}");
    assert_eq!(t.root().post(&path, &json!({"inputs": {"message": "hi"}})).await.status, 200);
}
