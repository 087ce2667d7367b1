//! Chat limits per address, workflow and session.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, TestService, chat, graphs, thread_of};

#[tokio::test]
async fn requests_are_limited_by_address_workflow_and_session() {
    for (variable, code) in [
        ("SERVICE_CHAT_RATE_LIMIT_IP", "429 chat.rate_limited.address"),
        ("SERVICE_CHAT_RATE_LIMIT_WORKFLOW", "429 chat.rate_limited.workflow"),
        ("SERVICE_CHAT_RATE_LIMIT_SESSION", "429 chat.rate_limited.session"),
    ] {
        let t = TestService::builder().set(variable, "2").manual_clock().start().await;
        let workflow = t.workflow().published().create().await;
        // One more request in the first thread, which all three share.
        let first = t.chat(&chat::create(&workflow, "hi")).await;
        let thread = thread_of(&first.text());
        let more = async || t.chat(&chat::add(&workflow, &thread, "hi")).await;
        let mut answers = Vec::new();
        for _ in 0..3 {
            answers.push(more().await);
        }
        let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
        assert_eq!(refused.refusal(), code);
        assert_eq!(refused.header("retry-after"), Some("30"), "{variable}");
        t.advance(Duration::from_secs(30));
        assert_eq!(more().await.status, 200, "{variable}");
        let other = t.workflow().published().create().await;
        t.advance(Duration::from_secs(1));
        let other_workflow = t.chat(&chat::create(&other, "hi")).await.status;
        assert_eq!(other_workflow == 429, variable.ends_with("IP"), "{variable}");
    }
}

#[tokio::test]
async fn concurrent_streams_per_session_are_limited() {
    let t = TestService::builder().set("SERVICE_CHAT_MAX_STREAMS", "2").start().await;
    let slow = graphs::words(&"word ".repeat(400), 20);
    let workflow = t.workflow().graph(slow).published().create().await;
    let hello = t.chat(&chat::ask(&workflow, "threads.list", serde_json::json!({}))).await;
    assert_eq!(hello.status, 200, "a response without a stream takes no permit");
    let first = t.open_chat(&chat::create(&workflow, "hi")).await;
    let cookie = first.header("set-cookie").unwrap().split(';').next().unwrap().to_owned();
    let stream = first.header("x-chat-stream-id").unwrap().to_owned();
    let headers = [("cookie", cookie.as_str())];
    let path = format!("/api/chat/streams/{stream}");
    let body = chat::create(&workflow, "more").to_string();
    let turn = [("cookie", cookie.as_str()), JSON];
    let other = t.open("POST", "/api/chat", &turn, &body).await;
    let ended = other.header("x-chat-stream-id").unwrap().to_owned();
    let ended_stream = format!("/api/chat/streams/{ended}");
    let stop = async |stream: &str| {
        t.send("POST", &format!("/api/chat/streams/{stream}/stop"), &headers, "").await.expect(200);
    };
    stop(&ended).await;
    other.whole().await;
    // The first request had no cookie yet, and so no session.
    let second = t.open("GET", &path, &headers, "").await;
    let third = t.open("GET", &path, &headers, "").await;
    let refused = t.send("GET", &ended_stream, &headers, "").await;
    assert_eq!(refused.refusal(), "429 chat.rate_limited.streams");
    // On the same stream, the oldest reader would be replaced instead.
    let rows = t.scalar("SELECT count(*) FROM runs").await;
    assert_eq!(t.send("POST", "/api/chat", &turn, &body).await.status, 429);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, rows, "no turn has begun");
    drop((second, third));
    let free = async || t.open("GET", &path, &headers, "").await.status == 200;
    integration_tests::until("a permit to be free", free).await;
    stop(&stream).await;
    first.whole().await;
}
