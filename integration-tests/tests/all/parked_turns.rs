//! Parked chat turns that wait for a person or a time: they use no memory, later messages get replies, and the turns
//! are answered later.

use std::time::Duration;

use integration_tests::{
    AnswerExt, RawAnswer, TestService, Workflow, chat, events, pause, thread_of, until, within,
};
use serde_json::{Value, json};

use crate::waiting_runs::answer;

/// Waits for a person if the message is `refund`, for a day if it is `tomorrow`, and replies at once otherwise.
pub(crate) fn desk() -> Value {
    json!({"format": "graph/1", "nodes": [
        {"name": "checking", "type": "reply", "text": "Checking. "},
        {"name": "ok", "type": "wait_for_input", "message": "Refund 40?"},
        {"name": "day", "type": "delay", "seconds": 86_400},
        {"name": "said", "type": "reply", "text": "Decided: {{ results.ok.value }}."},
        {"name": "woken", "type": "reply", "text": "Good morning."},
        {"name": "plain", "type": "reply", "text": "You said: {{ inputs.message }}"}],
      "edges": [
        {"from": "START", "cases": [{"when": "inputs.message == 'refund'", "to": "checking"},
                                    {"when": "inputs.message == 'tomorrow'", "to": "day"}], "else": "plain"},
        {"from": "checking", "to": "ok"}, {"from": "ok", "to": "said"}, {"from": "day", "to": "woken"},
        {"from": "said", "to": "END"}, {"from": "woken", "to": "END"}, {"from": "plain", "to": "END"}]})
}

async fn with_desk(t: &TestService, busy: &str) -> Workflow {
    t.workflow().graph(desk()).published().settings(json!({"chat": {"busy": busy}})).create().await
}

/// Sends a message whose turn parks; returns the stream's reader, the stream's id and the thread.
async fn parked(t: &TestService, workflow: &Workflow, text: &str) -> (RawAnswer, String, String) {
    let mut open = t.open_chat(&chat::create(workflow, text)).await;
    let stream = open.header("x-chat-stream-id").unwrap().to_owned();
    let begun = open.until("\"clock\"").await;
    let thread = thread_of(&begun);
    t.until_scalar("the turn is parked", "SELECT count(*) FROM run_queue", "1").await;
    assert_eq!(t.scalar("SELECT status FROM runs ORDER BY id LIMIT 1").await, "waiting");
    (open, stream, thread)
}

async fn run_of(t: &TestService) -> Value {
    json!({"id": t.scalar("SELECT id FROM runs ORDER BY id LIMIT 1").await})
}

async fn texts(t: &TestService, workflow: &Workflow, thread: &str) -> Vec<String> {
    let list = chat::ask(workflow, "items.list", json!({"thread_id": thread, "order": "asc", "limit": 20}));
    let items = t.chat(&list).await.value()["data"].as_array().unwrap().clone();
    items.iter().map(|item| item["content"][0]["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Number of replies without a reference to their message, and of messages with one.
pub(crate) async fn items_without_question(t: &TestService) -> String {
    let sql = "SELECT count(*)::text FROM thread_items
               WHERE (content::json->>'type' = 'user_message') = (answers IS NOT NULL)";
    t.scalar(sql).await
}

#[tokio::test]
async fn a_parked_turn_survives_its_reader_and_a_restart() {
    let mut t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "1").start().await;
    let workflow = with_desk(&t, "enqueue").await;
    let mut open = t.open_chat(&chat::create(&workflow, "refund")).await;
    let stream = open.header("x-chat-stream-id").unwrap().to_owned();
    let begun = open.until("\"clock\"").await;
    let received = events(&begun);
    let progress = received.iter().find(|event| event["type"] == "progress_update").unwrap();
    assert_eq!((&progress["text"], &progress["icon"]), (&json!("Refund 40?"), &json!("clock")));
    let thread = received[0]["thread"]["id"].as_str().unwrap().to_owned();
    drop(open);
    // Three times the grace period.
    pause(3_000).await;
    assert_eq!(t.scalar("SELECT status FROM runs").await, "waiting");
    until("the turn leaves memory", async || t.load().await.streams == 0).await;
    // Later messages get replies meanwhile, and those do not mention it.
    let other = t.chat(&chat::add(&workflow, &thread, "hello")).await;
    assert!(other.text().contains("You said: hello"), "{}", other.text());
    t.restart().await;
    // A returning reader joins the thread's stream and gets its rest.
    let mut joined = t.open("GET", &format!("/api/chat/threads/{thread}/stream"), &[], "").await;
    assert_eq!(joined.header("x-chat-stream-id"), Some(stream.as_str()));
    joined.until("\"clock\"").await;
    let run = run_of(&t).await;
    assert_eq!(answer(&t, &run, "ok", json!("yes")).await.status, 202);
    let rest = within("the rest", joined.rest()).await;
    assert!(rest.contains("thread.item.done") && !rest.contains("incomplete"), "{rest}");
    assert_eq!(t.scalar("SELECT status FROM runs ORDER BY id LIMIT 1").await, "succeeded");
    let items = texts(&t, &workflow, &thread).await;
    assert!(items.contains(&"Checking. Decided: yes.".to_owned()), "{items:?}");
    assert_eq!(items_without_question(&t).await, "0");
    // Its stream is complete: each event once.
    let whole = t.resume(&stream, None).await.rest().await;
    assert_eq!(whole.matches("Checking. ").count(), 2, "one delta, and the whole message: {whole}");
}

#[tokio::test]
async fn a_parked_turn_without_a_reader_completes_after_its_answer() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "0").start().await;
    let workflow = with_desk(&t, "enqueue").await;
    let (open, _, thread) = parked(&t, &workflow, "refund").await;
    drop(open);
    assert_eq!(answer(&t, &run_of(&t).await, "ok", json!("no")).await.status, 202);
    t.until_scalar("the run ends", "SELECT status FROM runs", "succeeded").await;
    assert_eq!(texts(&t, &workflow, &thread).await, ["refund", "Checking. Decided: no."]);
}

#[tokio::test]
async fn a_parked_turn_does_not_block_later_messages() {
    // Another message is not rejected, and does not end it.
    for busy in ["reject", "interrupt"] {
        let t = TestService::start().await;
        let workflow = with_desk(&t, busy).await;
        let (mut open, _, thread) = parked(&t, &workflow, "refund").await;
        let other = t.chat(&chat::add(&workflow, &thread, "hello")).await;
        assert!(other.text().contains("You said: hello"), "{busy}: {}", other.text());
        assert_eq!(t.scalar("SELECT status FROM runs ORDER BY id LIMIT 1").await, "waiting", "{busy}");
        assert_eq!(answer(&t, &run_of(&t).await, "ok", json!("yes")).await.status, 202);
        assert!(within("the rest", open.rest()).await.contains("Decided: yes."), "{busy}");
    }
}

#[tokio::test]
async fn a_parked_turn_is_stopped_at_once() {
    let t = TestService::start().await;
    let workflow = with_desk(&t, "enqueue").await;
    let (mut open, stream, thread) = parked(&t, &workflow, "refund").await;
    let stopped = t.stop_turn(&stream).await;
    assert_eq!((stopped.status, stopped.value()), (200, json!({"status": "stopped"})));
    let rest = within("the end", open.rest()).await;
    assert!(rest.contains("\"incomplete\"") && rest.contains("\"stopped\""), "{rest}");
    assert_eq!(answer(&t, &run_of(&t).await, "ok", json!("yes")).await.code(), "run.not_waiting");
    assert_eq!(texts(&t, &workflow, &thread).await, ["refund", "Checking. "]);
}

#[tokio::test]
async fn deleting_its_thread_cancels_a_parked_turn() {
    let t = TestService::start().await;
    let workflow = with_desk(&t, "enqueue").await;
    let (open, _, thread) = parked(&t, &workflow, "refund").await;
    t.chat(&chat::ask(&workflow, "threads.delete", json!({"thread_id": thread}))).await.expect(200);
    drop(open);
    t.until_scalar("the run ends", "SELECT status FROM runs", "cancelled").await;
    assert_eq!(t.scalar("SELECT count(*) FROM run_queue").await, "0");
}

#[tokio::test]
async fn a_long_delay_parks_the_turn_in_the_queue() {
    let t = TestService::with_manual_clock().await;
    let workflow = with_desk(&t, "enqueue").await;
    let mut open = t.open_chat(&chat::create(&workflow, "tomorrow")).await;
    let begun = t.while_time_passes(open.until("\"clock\"")).await;
    assert!(begun.contains("Waiting until "), "{begun}");
    t.advance(Duration::from_secs(86_400));
    let rest = t.while_time_passes(open.rest()).await;
    assert!(rest.contains("Good morning."), "{rest}");
    assert_eq!(t.scalar("SELECT count(*) FROM run_queue").await, "0");
}

/// Resumed turns are queued after those that were accepted meanwhile.
#[tokio::test]
async fn a_resumed_turn_waits_for_the_turn_that_executes() {
    let t = TestService::start().await;
    let mut graph = desk();
    let slowly = json!({"name": "plain", "type": "reply", "pieces": "words", "pause_ms": 300,
                        "text": "one two three four five"});
    graph["nodes"][5] = slowly;
    let workflow = t.workflow().graph(graph).published().create().await;
    let (mut open, _, thread) = parked(&t, &workflow, "refund").await;
    let mut other = t.open_chat(&chat::add(&workflow, &thread, "hello")).await;
    other.until("one").await;
    assert_eq!(answer(&t, &run_of(&t).await, "ok", json!("yes")).await.status, 202);
    let (first, second) = within("both ends", async { futures_util::join!(open.rest(), other.rest()) }).await;
    assert!(first.contains("Decided: yes.") && second.contains("five"));
    let order = "SELECT string_agg(inputs::json->>'message', ' ' ORDER BY finished_at) FROM runs";
    assert_eq!(t.scalar(order).await, "hello refund");
    // Its message stays at its original position.
    let items = texts(&t, &workflow, &thread).await;
    assert_eq!(items, ["refund", "Checking. Decided: yes.", "hello", "one two three four five"]);
}
