//! Stopping a turn: by request, and after its last reader has left.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{AnswerExt, TestService, chat, events, graphs, pause, thread_of, tidy, until};
use serde_json::{Value, json};

async fn status(t: &TestService) -> String {
    t.scalar("SELECT status FROM runs ORDER BY id DESC LIMIT 1").await
}

async fn has_status(t: &TestService, expected: &str) {
    until(expected, async || status(t).await == expected).await;
}

#[tokio::test]
async fn a_stopped_reply_keeps_its_text() {
    for headers in [&[][..], &[("chatkit-frame-instance-id", "f")][..]] {
        let t = TestService::with_manual_clock().await;
        let workflow =
            t.workflow().graph(graphs::interrupted("so far", 60.0, "never")).published().create().await;
        let body = chat::create(&workflow, "hi").to_string();
        let mut answer = t.open("POST", "/api/chat", headers, &body).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        let mut seen = answer.until("so far").await;
        let stopped = t.stop_turn(&stream).await;
        assert_eq!((stopped.status, stopped.value()), (200, json!({"status": "stopped"})));
        seen.push_str(&answer.rest().await);
        let done = events(&seen).pop().unwrap();
        assert_eq!(done["type"], "thread.item.done");
        assert_eq!(done["item"]["content"][0]["text"], "so far");
        assert_eq!(
            (&done["item"]["status"], &done["item"]["reason"]),
            (&json!("incomplete"), &json!("stopped"))
        );
        assert!(!seen.contains("user stopped"), "the instruction to the model is not sent: {seen}");
        let items = "SELECT string_agg(content::json->>'type', ' ' ORDER BY id) FROM thread_items";
        assert_eq!(t.scalar(items).await, "user_message assistant_message sdk_hidden_context");
        let run = "SELECT status || ' ' || (error::json->>'code') || ' ' || (cancel_requested_at IS NOT NULL) FROM runs";
        assert_eq!(t.scalar(run).await, "cancelled run.cancelled true");
        assert_eq!(t.resume(&stream, None).await.rest().await, seen);
    }
}

#[tokio::test]
async fn the_model_learns_that_the_previous_answer_was_stopped() {
    let t = TestService::with_manual_clock().await;
    let text = "{% for m in messages %}{{ m.role }}: {{ m.content }}|{% endfor %}";
    let graph = json!({"format": "graph/1", "nodes": [
        {"name": "say", "type": "reply", "text": text},
        {"name": "wait", "type": "delay", "seconds": "{{ 60 if inputs.message == 'wait' else 0 }}"}],
        "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "wait"}, {"from": "wait", "to": "END"}]});
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "wait")).await;
    let begun = first.until("user: wait|").await;
    t.stop_turn(first.header("x-chat-stream-id").unwrap()).await;
    first.rest().await;
    let thread = thread_of(&begun);
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "go on")).await;
    let answer = t.while_time_passes(second.rest()).await;
    let text = events(&answer).pop().unwrap()["item"]["content"][0]["text"].clone();
    assert_snapshot!(text.as_str().unwrap(), @"user: wait|assistant: user: wait||system: The user stopped the previous answer before it was complete.|user: go on|");
}

#[tokio::test]
async fn a_turn_stopped_before_any_text_ends_with_a_notice() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(60.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    has_status(&t, "running").await;
    assert_eq!(t.stop_turn(&stream).await.value(), json!({"status": "stopped"}));
    let body = answer.rest().await;
    assert_snapshot!(tidy(&body).lines().next_back().unwrap(), @r#"{"level":"info","message":"The answer was stopped.","type":"notice"}"#);
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "1");
    assert_eq!(status(&t).await, "cancelled");
}

#[tokio::test]
async fn a_waiting_turn_is_stopped_without_running() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::delayed(60.0, "{{ inputs.message }}")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "first")).await;
    let thread = thread_of(&first.until("stream_options").await);
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
    let mut third = t.open_chat(&chat::add(&workflow, &thread, "third")).await;
    let stream = second.header("x-chat-stream-id").unwrap().to_owned();
    assert_eq!(t.stop_turn(&stream).await.value(), json!({"status": "stopped"}));
    assert_eq!(events(&second.rest().await).pop().unwrap()["type"], "notice");
    let running = "SELECT count(*) FROM runs WHERE status = 'running'";
    t.until_scalar("only the first to have begun", running, "1").await;
    let rest = async { (first.rest().await, third.rest().await) };
    let (first, third) = t.while_time_passes_in(Duration::from_secs(1), rest).await;
    assert_eq!(events(&first).pop().unwrap()["item"]["content"][0]["text"], "first");
    assert_eq!(events(&third).pop().unwrap()["item"]["content"][0]["text"], "third");
    let statuses = "SELECT string_agg(status, ' ' ORDER BY id) FROM runs";
    assert_eq!(t.scalar(statuses).await, "succeeded cancelled succeeded");
}

#[tokio::test]
async fn stopping_is_idempotent_and_returns_the_turn_status() {
    let t = TestService::start().await;
    let slow = t.workflow().graph(graphs::delayed(600.0, "never")).published().create().await;
    let echo = t.workflow().echo().published().create().await;
    let broken = t.workflow().graph(graphs::reply("{{ inputs.nothing }}")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&slow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    let stops = futures_util::future::join_all((0..8).map(|_| t.stop_turn(&stream))).await;
    for stop in stops {
        assert_eq!((stop.status, stop.value()), (200, json!({"status": "stopped"})));
    }
    assert_eq!(t.stop_turn(&stream).await.value(), json!({"status": "stopped"}));
    answer.rest().await;
    let finished = t.visitor().say(&echo.id, "hi").await.unwrap().stream_id;
    assert_eq!(t.stop_turn(&finished).await.value(), json!({"status": "completed"}));
    assert_eq!(
        t.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded' AND cancel_requested_at IS NULL")
            .await,
        "1"
    );
    let failed = t.visitor().say(&broken.id, "hi").await.unwrap().stream_id;
    assert_eq!(t.stop_turn(&failed).await.value(), json!({"status": "failed"}));
    let unknown = t.stop_turn("0190b0a0-0000-7000-8000-000000000000").await;
    assert_eq!(unknown.refusal(), "404 stream.not_found");
}

#[tokio::test]
async fn a_stop_follows_the_rules_of_the_chat() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(graphs::delayed(600.0, "never")).published().create().await;
    let owner = t.visitor();
    let owned =
        owner.chat_raw(&chat::create(&workflow, "hi"), &client::ChatOptions::default()).await.unwrap();
    let stream = owned.stream_id().to_owned();
    let stranger = t.visitor();
    let echo = t.workflow().echo().published().create().await;
    stranger.say(&echo.id, "hi").await.unwrap();
    assert_eq!(stranger.stop(&stream).await.unwrap_err().code(), Some("stream.not_found"));
    assert_eq!(stranger.resume(&stream, None).await.err().unwrap().code(), Some("stream.not_found"));
    let cookie = format!("callboard_visitor={}", owner.cookie("callboard_visitor").unwrap());
    let path = format!("/api/chat/streams/{stream}/stop");
    let foreign = t.send("POST", &path, &[("cookie", &cookie), ("origin", "https://evil.example")], "").await;
    assert_eq!(foreign.refusal(), "403 auth.origin_mismatch");
    assert_eq!(status_of(&t, &workflow.id).await, "running");
    owner.stop(&stream).await.unwrap();
    assert_eq!(status_of(&t, &workflow.id).await, "cancelled");
}

async fn status_of(t: &TestService, workflow: &str) -> String {
    let sql = format!("SELECT status FROM runs WHERE workflow_id = '{workflow}'");
    until("the turn to begin", async || t.scalar(&sql).await != "queued").await;
    t.scalar(&sql).await
}

#[tokio::test]
async fn a_turn_without_readers_is_stopped_after_the_grace_period() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "30").manual_clock().start().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 600.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    answer.until("so far").await;
    t.advance(Duration::from_secs(100));
    pause(100).await;
    assert_eq!(status(&t).await, "running", "it has a reader");
    drop(answer);
    // Only a write, such as a ping, reveals that the reader has gone.
    until("the service to see that the reader has gone", async || {
        t.advance(Duration::from_secs(10));
        pause(20).await;
        status(&t).await == "cancelled"
    })
    .await;
    let body = t.resume(&stream, None).await.rest().await;
    assert_eq!(events(&body).pop().unwrap()["item"]["content"][0]["text"], "so far");
    assert_eq!(t.scalar("SELECT error::json->>'code' FROM runs").await, "run.abandoned");
}

#[tokio::test]
async fn a_reader_that_closes_a_silent_stream_is_noticed_at_once() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "0").manual_clock().start().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 600.0, "never")).published().create().await;
    for resumes in [false, true] {
        for half_closed in [false, true] {
            let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
            answer.until("so far").await;
            if resumes {
                let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
                let mut second = t.resume(&stream, None).await;
                second.until("so far").await;
                drop(std::mem::replace(&mut answer, second));
            }
            // The clock is stopped, so no ping reveals that the reader has gone.
            if half_closed {
                assert!(answer.close_writing().await);
            } else {
                drop(answer);
            }
            let latest = "SELECT status FROM runs ORDER BY id DESC LIMIT 1";
            t.until_scalar("the turn to be abandoned", latest, "cancelled").await;
        }
    }
}

#[tokio::test]
async fn a_returning_reader_cancels_the_countdown() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 600.0, " and on")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    answer.until("so far").await;
    for _ in 0..3 {
        drop(answer);
        pause(50).await;
        t.advance(Duration::from_secs(29));
        pause(50).await;
        answer = t.resume(&stream, None).await;
        answer.until("so far").await;
        t.advance(Duration::from_secs(100));
        pause(50).await;
        assert_eq!(status(&t).await, "running");
    }
    let rest = t.while_time_passes_in(Duration::from_secs(5), answer.rest()).await;
    assert!(rest.contains("so far and on"), "{rest}");
}

#[tokio::test]
async fn a_turn_ends_with_its_reader_without_a_grace_period() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "0").start().await;
    let workflow = t.workflow().graph(graphs::words(&"word ".repeat(1000), 10)).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("word").await;
    assert_eq!(status(&t).await, "running");
    drop(answer);
    has_status(&t, "cancelled").await;
}

#[tokio::test]
async fn an_endless_grace_period_needs_no_reader() {
    let t =
        TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "forever").manual_clock().start().await;
    let workflow = t.workflow().graph(graphs::delayed(1_000.0, "at last")).published().create().await;
    let answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
    drop(answer);
    has_status(&t, "running").await;
    t.while_time_passes_in(Duration::from_secs(20), has_status(&t, "succeeded")).await;
    let body = t.resume(&stream, None).await.rest().await;
    let last: Value = events(&body).pop().unwrap();
    assert_eq!(last["item"]["content"][0]["text"], "at last");
}

#[tokio::test]
async fn the_countdown_of_a_waiting_turn_begins_with_the_turn() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "30").manual_clock().start().await;
    let workflow =
        t.workflow().graph(graphs::delayed(100.0, "{{ inputs.message }}")).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "first")).await;
    let thread = thread_of(&first.until("stream_options").await);
    let second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
    drop(second);
    pause(50).await;
    t.while_time_passes_in(Duration::from_secs(1), first.rest()).await;
    // It has waited without a reader for longer than the grace period, and still runs.
    has_status(&t, "running").await;
    t.while_time_passes_in(Duration::from_secs(1), has_status(&t, "cancelled")).await;
    let ran = "SELECT extract(epoch FROM finished_at - started_at)::int FROM runs ORDER BY id DESC LIMIT 1";
    let ran: i64 = t.scalar(ran).await.parse().unwrap();
    assert!((30..100).contains(&ran), "{ran} s");
}

/// Nothing of it is stored, so readers drop it as well.
#[tokio::test]
async fn a_stopped_reply_without_text_is_removed() {
    for headers in [&[][..], &[("chatkit-frame-instance-id", "f")][..]] {
        let t = TestService::with_manual_clock().await;
        let workflow =
            t.workflow().graph(graphs::interrupted("\n", 60.0, "never")).published().create().await;
        let body = chat::create(&workflow, "hi").to_string();
        let mut answer = t.open("POST", "/api/chat", headers, &body).await;
        let stream = answer.header("x-chat-stream-id").unwrap().to_owned();
        let begun = answer.until("thread.item.updated").await;
        t.stop_turn(&stream).await;
        let all = events(&(begun + &answer.rest().await));
        let [.., removed, notice] = &all[..] else { panic!("{all:?}") };
        let added = all.iter().find(|event| event["type"] == "thread.item.added").unwrap();
        assert_eq!(
            (&removed["type"], &removed["item_id"], &notice["type"]),
            (&json!("thread.item.removed"), &added["item"]["id"], &json!("notice"))
        );
        assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "1");
    }
}
