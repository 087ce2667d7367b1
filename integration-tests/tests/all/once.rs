//! A changing request with an `Idempotency-Key` takes effect once.

use std::net::{IpAddr, Ipv4Addr};

use futures_util::future::join_all;
use insta::assert_snapshot;
use integration_tests::{Answer, AnswerExt, JSON, Raw, TestService, graphs, pause, shown};
use serde_json::{Value, json};

async fn send(t: &TestService, method: &str, path: &str, key: &str, body: &str) -> Answer {
    t.send(method, path, &[JSON, ("idempotency-key", key)], body).await
}

async fn make(t: &TestService, key: &str, body: &Value) -> Answer {
    send(t, "POST", "/api/workflows", key, &body.to_string()).await
}

fn replayed(answer: &Answer) -> bool {
    answer.header("idempotency-replayed") == Some("true")
}

/// The parts of a response that a client can compare.
fn comparable_parts(answer: &Answer) -> (u16, Option<&str>, String) {
    (answer.status, answer.header("content-type"), answer.text())
}

#[tokio::test]
async fn every_change_is_made_once_and_its_response_replayed() {
    let mut t = TestService::start().await;
    let slow = t.workflow().graph(graphs::delayed(60.0, "late")).create().await;
    let run = t.post(&slow.path("/runs"), "{}").await.value();
    let cancel = format!("/api/runs/{}/cancel", run["id"].as_str().unwrap());
    let version = json!({"graph": graphs::reply("x")}).to_string();
    let requests = [
        ("POST", "/api/workflows", r#"{"name": "Desk"}"#, 201),
        ("POST", "/api/workflows/desk/versions", version.as_str(), 201),
        ("POST", "/api/workflows/desk/publish", r#"{"require_login": true}"#, 201),
        ("POST", "/api/workflows/desk/publish/revoke", "", 200),
        ("POST", cancel.as_str(), "", 200),
        // From here on, the names in earlier requests do not exist any more.
        ("PUT", "/api/workflows/desk", r#"{"handle": "front", "name": "Front"}"#, 200),
        ("DELETE", "/api/workflows/front", "", 200),
    ];
    let mut first = Vec::new();
    for (method, path, body, status) in requests {
        let answer = send(&t, method, path, "k", body).await;
        assert_eq!((answer.status, replayed(&answer)), (status, false), "{path}: {}", answer.text());
        first.push(answer);
    }
    let record = t.get("/api/workflows/front").await.value();
    for _ in 0..2 {
        for ((method, path, body, _), first) in requests.iter().zip(&first) {
            let again = send(&t, method, path, "k", body).await;
            assert_eq!(
                (comparable_parts(&again), replayed(&again)),
                (comparable_parts(first), true),
                "{method} {path}"
            );
        }
        t.restart().await;
    }
    assert_eq!(t.get("/api/workflows/front").await.value(), record, "no change was repeated");
    assert_eq!(t.scalar("SELECT count(*) FROM workflows").await, "2");
    assert_eq!(t.scalar("SELECT count(*) FROM workflow_versions").await, "2");
    // Without a key, or with another one, it is a different request.
    assert_eq!(t.post("/api/workflows", r#"{"name": "Desk"}"#).await.value()["handle"], "desk");
    assert_eq!(make(&t, "k2", &json!({"name": "Desk"})).await.value()["handle"], "desk-2");
}

#[tokio::test]
async fn a_key_identifies_one_body_of_one_caller_on_one_path() {
    let t = TestService::builder().alone().start().await;
    let first = make(&t, "k", &json!({"name": "Desk"})).await;
    let other = make(&t, "k", &json!({"name": "Desk 2"})).await;
    assert_snapshot!(shown(&other), @r#"
    422
    content-type: application/json
    {"detail":{"message":"This Idempotency-Key was already used with another request body.","code":"idempotency.key_reused"}}
    "#);
    assert_eq!(make(&t, "k", &json!({"name": "Desk"})).await.text(), first.text());
    t.post("/api/workflows", r#"{"name": "Other"}"#).await;
    for (method, path, body) in [
        ("PUT", "/api/workflows/desk", r#"{"name": "D"}"#),
        ("PUT", "/api/workflows/other", r#"{"name": "O"}"#),
        ("DELETE", "/api/workflows/other", ""),
    ] {
        let answer = send(&t, method, path, "k", body).await;
        assert_eq!((answer.status, replayed(&answer)), (200, false), "{method} {path}");
    }
    let stranger = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));
    let raw = Raw::connect_from(stranger, t.address()).await;
    let headers = [JSON, ("idempotency-key", "k"), ("connection", "close")];
    let theirs = raw.request("POST", "/api/workflows", &headers, r#"{"name": "Desk"}"#).await.whole().await;
    assert_eq!((theirs.status, replayed(&theirs)), (201, false));
    assert_ne!(theirs.value()["id"], first.value()["id"]);
    let twice = [JSON, ("idempotency-key", "a"), ("idempotency-key", "a")];
    let refused = t.send("POST", "/api/workflows", &twice, r#"{"name": "x"}"#).await;
    assert_eq!(refused.refusal(), "400 idempotency.key_invalid");
}

#[tokio::test]
async fn concurrent_equal_requests_change_once() {
    let t = TestService::start().await;
    for round in 1..=5 {
        let (key, body) = (format!("k{round}"), json!({"name": "Same"}));
        let mut answers = join_all((0..12).map(|_| make(&t, &key, &body))).await;
        assert_eq!(answers.iter().filter(|answer| answer.status == 201 && !replayed(answer)).count(), 1);
        for answer in &mut answers {
            if answer.status != 201 {
                assert_eq!(answer.refusal(), "409 idempotency.in_progress");
                assert_eq!(answer.header("retry-after"), Some("1"));
                *answer = make(&t, &key, &body).await;
            }
        }
        assert!(answers.iter().all(|answer| comparable_parts(answer) == comparable_parts(&answers[0])));
        assert_eq!(t.scalar("SELECT count(*) FROM workflows").await, round.to_string());
    }
}

/// Locks every workflow row until a table `released` exists.
const HOLD: &str = "BEGIN; SELECT FROM workflows FOR UPDATE;
    DO $$ BEGIN WHILE NOT EXISTS (SELECT FROM pg_class WHERE relname = 'released') LOOP PERFORM pg_sleep(0.01); END LOOP; END $$; COMMIT";
const WAITING: &str = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

/// Calls `then` in the middle of a change.
async fn during_change<T>(t: &TestService, change: impl Future<Output = T>, then: impl AsyncFnOnce()) -> T {
    let hold = t.execute(HOLD);
    let rest = async {
        let locked = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
        t.until_scalar("the rows to be locked", locked, "1").await;
        let waits = async {
            t.until_scalar("the change to wait", &format!("SELECT count(*) {WAITING}"), "1").await;
            then().await;
            t.execute("CREATE TABLE released ()").await;
        };
        futures_util::future::join(change, waits).await.0
    };
    futures_util::future::join(hold, rest).await.1
}

#[tokio::test]
async fn a_request_during_the_first_is_409_in_progress() {
    let t = TestService::start().await;
    t.post("/api/workflows", r#"{"name": "Desk"}"#).await;
    let put = async |body: &'static str| send(&t, "PUT", "/api/workflows/desk", "k", body).await;
    let first = during_change(&t, put(r#"{"name": "New"}"#), async || {
        let second = put(r#"{"name": "New"}"#).await;
        assert_snapshot!(shown(&second), @r#"
        409
        content-type: application/json
        retry-after: 1
        {"detail":{"message":"A request with this Idempotency-Key is still in progress.","code":"idempotency.in_progress"}}
        "#);
    })
    .await;
    assert_eq!((first.status, replayed(&first)), (200, false));
    let again = put(r#"{"name": "New"}"#).await;
    assert_eq!((comparable_parts(&again), replayed(&again)), (comparable_parts(&first), true));
    assert_eq!(put(r#"{"name": "Newer"}"#).await.refusal(), "422 idempotency.key_reused");
}

#[tokio::test]
async fn an_interrupted_request_changes_nothing_and_can_be_repeated() {
    let t = TestService::start().await;
    t.post("/api/workflows", r#"{"name": "Desk"}"#).await;
    let put = async || send(&t, "PUT", "/api/workflows/desk", "k", r#"{"name": "New"}"#).await;
    let died = during_change(&t, put(), async || {
        t.execute(&format!("SELECT pg_terminate_backend(pid) {WAITING}")).await;
        pause(200).await;
    })
    .await;
    assert_eq!(died.status, 503, "{}", died.text());
    assert_eq!(t.get("/api/workflows/desk").await.value()["name"], "Desk");
    t.assert_no_rows("idempotency_keys").await;
    let again = put().await;
    assert_eq!((again.status, replayed(&again), &again.value()["name"]), (200, false, &json!("New")));
    assert!(replayed(&put().await));
}

#[tokio::test]
async fn a_request_completes_once_after_its_caller_disconnects() {
    let t = TestService::start().await;
    t.post("/api/workflows", r#"{"name": "Desk"}"#).await;
    let (path, body) = ("/api/workflows/desk/versions", json!({"graph": graphs::reply("x")}).to_string());
    let mut raw = t.raw().await;
    let leaves = async {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nIdempotency-Key: k\r\n\
             Content-Length: {}\r\n\r\n{body}",
            t.address(),
            body.len()
        );
        raw.write(request).await;
        t.until_scalar("the request to wait", &format!("SELECT count(*) {WAITING}"), "1").await;
        pause(100).await;
        drop(raw);
    };
    during_change(&t, leaves, async || pause(400).await).await;
    let mut answer = send(&t, "POST", path, "k", &body).await;
    while answer.status == 409 {
        pause(20).await;
        answer = send(&t, "POST", path, "k", &body).await;
    }
    assert_eq!((answer.status, &answer.value()["version"]), (201, &json!(1)));
    assert_eq!(comparable_parts(&send(&t, "POST", path, "k", &body).await), comparable_parts(&answer));
    assert_eq!(t.scalar("SELECT count(*) FROM workflow_versions").await, "1");
}

#[tokio::test]
async fn rejections_are_not_stored() {
    let t = TestService::start().await;
    t.post("/api/workflows", r#"{"name": "Taken"}"#).await;
    for (body, refusal) in [
        (json!({"name": "x", "handle": "taken"}), "409 workflow.handle_taken"),
        (json!({"name": ""}), "422 request.invalid"),
    ] {
        assert_eq!(make(&t, "k", &body).await.refusal(), refusal);
    }
    let put = |body| send(&t, "PUT", "/api/workflows/desk", "k", body);
    assert_eq!(put(r#"{"name": "x"}"#).await.refusal(), "404 workflow.not_found");
    t.assert_no_rows("idempotency_keys").await;
    let made = make(&t, "k", &json!({"name": "Desk"})).await;
    assert_eq!((made.status, replayed(&made)), (201, false), "another body, and the key is free");
    assert_eq!(put(r#"{"handle": "taken"}"#).await.refusal(), "409 workflow.handle_taken");
    let changed = put(r#"{"name": "x"}"#).await;
    assert_eq!((changed.status, replayed(&changed)), (200, false));
}

#[tokio::test]
async fn responses_are_stored_for_a_day() {
    let t = TestService::start().await;
    let first = make(&t, "k", &json!({"name": "Desk"})).await;
    let age = |by: &str| format!("UPDATE idempotency_keys SET created_at = created_at - interval '{by}'");
    t.execute(&age("23 hours 59 minutes")).await;
    assert_eq!(make(&t, "k", &json!({"name": "Desk"})).await.text(), first.text());
    t.execute(&age("2 minutes")).await;
    let anew = make(&t, "k", &json!({"name": "Desk"})).await;
    assert_eq!((replayed(&anew), anew.value()["handle"].as_str()), (false, Some("desk-2")));
}
