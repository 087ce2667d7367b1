//! Upload limits: size, concurrency and rate.

use std::time::Duration;

use integration_tests::{AnswerExt, Raw, TestService, Workflow, chat, noise, until};
use serde_json::json;

use super::{form, form_type, upload, uploaded};

#[tokio::test]
async fn a_session_has_a_daily_upload_limit() {
    let t =
        TestService::builder().manual_clock().set("SERVICE_CHAT_UPLOAD_DAILY_BYTES", "1000").start().await;
    let workflow = t.workflow().echo().published().create().await;
    uploaded(&t, &workflow, "a.txt", &[b'a'; 600]).await;
    let refused = upload(&t, &workflow, "b.txt", &[b'a'; 401]).await;
    assert_eq!(refused.refusal(), "429 chat.rate_limited.uploads");
    let wait: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&wait), "{wait}");
    uploaded(&t, &workflow, "c.txt", &[b'a'; 400]).await;
    assert_eq!(t.scalar("SELECT sum(bytes) FROM upload_days WHERE session LIKE 'address:%'").await, "1000");
    let announce = json!({"name": "d.txt", "size": 1, "mime_type": "text/plain"});
    let announced = t.chat(&chat::ask(&workflow, "attachments.create", announce)).await;
    assert_eq!(announced.refusal(), "429 chat.rate_limited.uploads");
    t.advance(Duration::from_secs(wait));
    uploaded(&t, &workflow, "e.txt", &[b'a'; 1_000]).await;
    assert_eq!(
        upload(&t, &workflow, "f.txt", &[b'a'; 1_001]).await.refusal(),
        "429 chat.rate_limited.uploads"
    );
}

#[tokio::test]
async fn a_network_has_ten_times_the_daily_limit_checked_before_the_body() {
    let t = TestService::builder().set("SERVICE_CHAT_UPLOAD_DAILY_BYTES", "500000").start().await;
    let workflow = t.workflow().echo().published().create().await;
    uploaded(&t, &workflow, "a.txt", b"a").await;
    t.execute("UPDATE upload_days SET bytes = 0 WHERE session NOT LIKE 'network:%'").await;
    t.execute("UPDATE upload_days SET bytes = 4999999 WHERE session LIKE 'network:%'").await;
    uploaded(&t, &workflow, "b.txt", b"b").await;
    // The rest of the body is never sent.
    let answer = started_upload(&t, &workflow, 400_000).await.answer().await.whole().await;
    assert_eq!(answer.refusal(), "429 chat.rate_limited.uploads");
    assert_eq!(t.scalar("SELECT count(*) FROM upload_chunks").await, "0");
}

#[tokio::test]
async fn announced_bytes_count_towards_the_daily_limit_at_once() {
    let t = TestService::builder().set("SERVICE_CHAT_UPLOAD_DAILY_BYTES", "1000").start().await;
    let workflow = t.workflow().echo().published().create().await;
    let announce = async |size: usize| {
        let params = json!({"name": "a.txt", "size": size, "mime_type": "text/plain"});
        t.chat(&chat::ask(&workflow, "attachments.create", params)).await
    };
    let first = announce(600).await;
    assert_eq!(announce(401).await.refusal(), "429 chat.rate_limited.uploads");
    assert_eq!(upload(&t, &workflow, "b.txt", &[b'a'; 401]).await.refusal(), "429 chat.rate_limited.uploads");
    let url = first.value()["upload_descriptor"]["url"].as_str().unwrap().to_owned();
    let path = &url[url.find("/api").unwrap()..];
    assert_eq!(t.send("PUT", path, &[], [b'a'; 600]).await.status, 200);
    assert_eq!(announce(400).await.status, 200);
}

#[tokio::test]
async fn slow_uploads_of_two_clients_do_not_block_a_third() {
    let t = TestService::builder().alone().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut slow = Vec::new();
    for from in ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"] {
        let connection = Raw::connect_from(from.parse().unwrap(), t.address()).await;
        slow.push(started_upload_on(connection, &t, &workflow, 400_000).await);
    }
    let four = "SELECT count(DISTINCT upload_id) = 4 FROM upload_chunks";
    t.until_scalar("four uploads to start", four, "true").await;
    uploaded(&t, &workflow, "c.txt", b"c").await;
}

#[tokio::test]
async fn announced_uploads_take_no_permit_before_bytes_arrive() {
    let t = TestService::builder().alone().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let mut silent = Vec::new();
    for _ in 0..4 {
        let mut connection = t.raw().await;
        let head =
            upload_head(&t, &workflow, 400_000).replace("\r\n\r\n", "\r\nExpect: 100-continue\r\n\r\n");
        connection.write(head).await;
        // The service waits for the body.
        let answer = connection.answer().await.expect(100);
        silent.push(answer);
    }
    uploaded(&t, &workflow, "c.txt", b"c").await;
}

/// An upload that has sent its first bytes.
async fn started_upload(t: &TestService, workflow: &Workflow, length: usize) -> Raw {
    started_upload_on(t.raw().await, t, workflow, length).await
}

/// The head of an upload with a body of this length.
fn upload_head(t: &TestService, workflow: &Workflow, length: usize) -> String {
    format!(
        "POST /api/chat/upload?workflow_id={} HTTP/1.1\r\nHost: {}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n\r\n",
        workflow.id,
        t.address(),
        form_type(),
    )
}

async fn started_upload_on(mut connection: Raw, t: &TestService, workflow: &Workflow, length: usize) -> Raw {
    let body = form("a.txt", &vec![b'a'; length]);
    connection.write(upload_head(t, workflow, body.len())).await;
    connection.write(&body[..300_000]).await;
    connection
}

#[tokio::test]
async fn a_session_uploads_at_most_two_files_concurrently() {
    let t = TestService::builder().alone().start().await;
    let workflow = t.workflow().echo().published().create().await;
    let first = started_upload(&t, &workflow, 400_000).await;
    let _second = started_upload(&t, &workflow, 400_000).await;
    let two = "SELECT count(DISTINCT upload_id) = 2 FROM upload_chunks";
    t.until_scalar("two uploads to start", two, "true").await;
    let refused = upload(&t, &workflow, "c.txt", b"c").await;
    assert_eq!(refused.refusal(), "429 chat.rate_limited.uploads");
    assert_eq!(refused.header("retry-after"), Some("2"));
    drop(first);
    until("a free upload permit", async || upload(&t, &workflow, "c.txt", b"c").await.status == 200).await;
}

#[tokio::test]
async fn clients_that_send_too_slowly_are_rejected() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().echo().published().create().await;
    let connection = started_upload(&t, &workflow, 400_000).await;
    t.until_scalar("a chunk to be stored", "SELECT count(*) FROM upload_chunks", "1").await;
    let answer = t.while_time_passes(connection.answer()).await;
    let answer = t.while_time_passes(answer.whole()).await;
    assert_eq!(answer.refusal(), "408 request.timeout");
    t.until_scalar("the chunk to be deleted", "SELECT count(*) FROM upload_chunks", "0").await;
}

#[tokio::test]
async fn a_full_workspace_rejects_files() {
    let mut t = TestService::builder().alone().set("SERVICE_WORKSPACE_STORAGE_BYTES", "100000").start().await;
    let workflow = t.workflow().echo().published().create().await;
    t.measured().await;
    uploaded(&t, &workflow, "a.txt", noise(200_000).as_bytes()).await;
    // A workspace is full after two measurements over the limit.
    t.measure().await;
    t.measure().await;
    until("the workspace to be full", async || {
        upload(&t, &workflow, "b.txt", b"b").await.refusal() == "507 workspace.storage_full"
    })
    .await;
    let params = json!({"name": "c.txt", "size": 1, "mime_type": "text/plain"});
    let refused = t.chat(&chat::ask(&workflow, "attachments.create", params)).await;
    assert_eq!(refused.refusal(), "507 workspace.storage_full");
}
