//! Streams on the wire: pings, slow readers, long texts.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, chat, events, graphs, thread_of, until, within};
use kernel::Clock;
use serde_json::json;

#[tokio::test]
async fn an_idle_stream_pings_every_ten_seconds() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(55.0, "at last")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("thread.updated").await;
    let start = t.clock().monotonic();
    for ping in 1..=3 {
        let waiting = answer.until("\n\n");
        assert_eq!(t.while_time_passes_in(Duration::from_millis(20), waiting).await, ": ping\n\n");
        // A ping is seen shortly after it is sent.
        let late = (t.clock().monotonic() - start).as_millis().checked_sub(10_000 * ping);
        assert!(late.is_some_and(|late| late < 9_000), "ping {ping}: {late:?} ms late");
    }
    // Stopped, so that no further ping comes in between.
    t.stop_turn(answer.header("x-chat-stream-id").unwrap()).await;
    let rest = answer.rest().await;
    assert!(rest.contains("The answer was stopped.") && !rest.contains("ping"), "{rest}");
    // Pings are not events: they are not stored, and resuming readers get none.
    assert_eq!(t.scalar("SELECT count(*) FROM stream_events WHERE frames LIKE '%ping%'").await, "0");
}

#[tokio::test]
async fn a_waiting_turns_stream_pings_too() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(15.0, "done")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "hi")).await;
    let begun = first.until("stream_options").await;
    let thread = thread_of(&begun);
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "more")).await;
    second.until("stream_options").await;
    let seen = async { (first.rest().await, second.rest().await) };
    let (_, second) = t.while_time_passes_in(Duration::from_millis(100), seen).await;
    assert!(second.contains(": ping\n\n"), "{second}");
}

/// A client reads two million bytes byte by byte, while others chat.
#[tokio::test]
async fn a_slow_reader_gets_every_event_and_does_not_affect_others() {
    let t = TestService::start().await;
    let text = "{% for i in range(40) %}{{ inputs.message }}{% endfor %}";
    let workflow = t.workflow().graph(graphs::words(text, 0)).published().create().await;
    let echo = t.workflow().echo().published().create().await;
    let line = "word ".repeat(10_000);
    let mut slow = t.open_chat(&chat::create(&workflow, &line)).await;
    let stream = slow.header("x-chat-stream-id").unwrap().to_owned();
    // It reads nothing during the turn, and the turn continues nevertheless.
    t.until_scalar("the turn to end", "SELECT status FROM runs", "succeeded").await;
    for n in 0..10 {
        // They do not wait for the slow one, whose stream is still unread.
        let turn = t.visitor().say(&echo.id, &format!("{n}")).await.unwrap();
        assert_eq!(turn.text, format!("You said: {n}"));
    }
    let body = within("the slow reader", slow.rest()).await;
    assert!(body.len() > 4_000_000, "{}", body.len());
    assert_eq!(t.resume(&stream, None).await.rest().await, body);
    let done = events(&body).pop().unwrap();
    assert_eq!(done["item"]["content"][0]["text"].as_str().unwrap().len(), 40 * line.len());
}

#[tokio::test]
async fn a_reader_of_single_bytes_gets_the_same_as_others() {
    let t = TestService::start().await;
    let workflow =
        t.workflow().graph(graphs::words(&"some words ".repeat(200), 1)).published().create().await;
    let mut raw = t.raw().await;
    let body = chat::create(&workflow, "hi").to_string();
    let head =
        "POST /api/chat HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n";
    // It also writes byte by byte.
    for byte in format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).bytes() {
        raw.write([byte]).await;
    }
    let mut answer = raw.one_byte_at_a_time().answer().await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let seen = answer.rest().await;
    assert_eq!(t.resume(&stream, None).await.rest().await, seen);
}

#[tokio::test]
async fn a_reply_in_one_piece_of_six_megabytes_arrives() {
    let t = TestService::start().await;
    let text = "{% for i in range(12) %}{{ inputs.message }}{% endfor %}";
    let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
    let line = "\u{1F600}".repeat(125_000);
    let mut answer = t.open_chat(&chat::create(&workflow, &line)).await;
    let body = answer.rest().await;
    let done = events(&body).pop().unwrap();
    assert_eq!(done["item"]["content"][0]["text"].as_str().unwrap().len(), 12 * line.len());
    assert_eq!(t.scalar("SELECT status FROM runs").await, "succeeded");
}

#[tokio::test]
async fn several_nodes_write_one_message_in_graph_order() {
    let t = TestService::start().await;
    let graph = json!({"format": "graph/1", "nodes": [
        {"name": "a", "type": "reply", "text": "slow and first ", "pieces": "words", "pause_ms": 30},
        {"name": "b", "type": "reply", "text": "quick and second "},
        {"name": "c", "type": "reply", "text": "then the last"}],
        "edges": [{"from": "START", "to": "a"}, {"from": "START", "to": "b"}, {"from": ["a", "b"], "to": "c"}, {"from": "c", "to": "END"}]});
    let workflow = t.workflow().graph(graph).published().create().await;
    let turn = t.visitor().say(&workflow.id, "hi").await.unwrap();
    assert_eq!(turn.text, "slow and first quick and second then the last");
    let items = "SELECT count(*) FROM thread_items WHERE content LIKE '%assistant_message%'";
    assert_eq!(t.scalar(items).await, "1");
}

#[tokio::test]
async fn short_connections_leave_nothing_behind() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "0").start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(50), 2)).published().create().await;
    for round in 0..60 {
        let answer = t.open_chat(&chat::create(&workflow, "hi")).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        if round % 3 == 0 {
            drop(t.resume(&stream, None).await);
        }
        if round % 4 == 0 {
            drop(answer);
            continue;
        }
        let mut answer = answer;
        for _ in 0..round % 5 {
            answer.try_piece().await;
        }
    }
    t.settled().await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "0");
    t.assert_healthy().await;
}

/// A run's stream has its own address, and its own rules.
#[tokio::test]
async fn run_streams_are_not_chat_streams() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(5.0, "done")).published().create().await;
    let run = t.post(&workflow.path("/runs"), r#"{"inputs": {}}"#).await.expect(202).member("id");
    for client in [t.visitor(), t.anonymous()] {
        assert_eq!(client.stop(&run).await.unwrap_err().code(), Some("stream.not_found"));
        assert_eq!(client.resume(&run, None).await.err().unwrap().code(), Some("stream.not_found"));
    }
    assert_eq!(t.scalar("SELECT cancel_requested_at IS NULL FROM runs").await, "true");
    let status = "SELECT status FROM runs";
    t.while_time_passes(until("the run to end", async || t.scalar(status).await == "succeeded")).await;
    assert_eq!(t.get(&format!("/api/chat/streams/{run}")).await.refusal(), "404 stream.not_found");
}

/// A client that gets "stream not found" does not come back.
#[tokio::test]
async fn a_database_error_is_not_reported_as_a_missing_stream() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let stream = t.anonymous().say(&workflow.id, "hi").await.unwrap().stream_id;
    t.execute("REVOKE SELECT ON threads FROM callboard_app").await;
    let path = format!("/api/chat/streams/{stream}");
    let refused = [t.get(&path).await, t.post(&format!("{path}/stop"), "").await];
    t.execute("GRANT SELECT ON threads TO callboard_app").await;
    for answer in refused {
        assert!(answer.status >= 500, "{} {}", answer.status, answer.refusal());
    }
    assert_eq!(t.get(&path).await.status, 200);
}

/// The remains of lost connections do not lock a visitor out.
#[tokio::test]
async fn a_resumed_stream_replaces_an_old_reader() {
    let t = TestService::builder().alone().set("SERVICE_CHAT_MAX_STREAMS", "2").start().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("First. ", 60.0, "Never.")).published().create().await;
    let mut turn = t.open_chat(&chat::create(&workflow, "hi")).await;
    turn.until("First.").await;
    let stream = turn.header("x-chat-stream-id").unwrap().to_owned();
    // The thread is the session of clients without a cookie. None of these reads any further.
    let mut old = Vec::new();
    for _ in 0..5 {
        let mut resumed = t.resume(&stream, None).await.expect(200);
        resumed.until("stream.live").await;
        old.push(resumed);
    }
    // The newest two stay open, and the others were ended.
    for replaced in &mut old[..3] {
        while replaced.try_piece().await.is_some() {}
    }
    assert!(old[4].is_silent_for(100).await && old[3].is_silent_for(100).await);
    assert_eq!(t.stop_turn(&stream).await.status, 200);
}
