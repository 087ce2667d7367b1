//! Turns that continue with an answer: their position in the thread order, and the dialect of their stream.

use integration_tests::{Answer, AnswerExt, Endpoint, JSON, TestService, chat, events, until};
use serde_json::{Value, json};

use crate::questions::{PendingQuestion, SUCCEEDED};
use crate::waiting_runs::answer;

const CHATKIT: &str = "chatkit";
const INTERFACE: &str = "interface";

/// Asks a model if the message is `slow`, otherwise the visitor.
fn graph() -> Value {
    json!({"format": "graph/1", "nodes": [
        {"name": "slow", "type": "llm", "model": "openai/x", "user": "hi", "stream": true},
        {"name": "sure", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "Sure?"}]},
        {"name": "said", "type": "reply", "text": "Thank you."}],
      "edges": [
        {"from": "START", "cases": [{"when": "inputs.message == 'slow'", "to": "slow"}], "else": "sure"},
        {"from": "sure", "to": "said"}, {"from": ["slow", "said"], "to": "END"}]})
}

fn positive_answer() -> Value {
    json!({"answers": {"q": {"values": ["yes"]}}})
}

#[tokio::test]
async fn a_continuing_turn_waits_for_the_running_turn_under_every_policy() {
    let model = Endpoint::holding().await;
    let t = model.service().await;
    let mut threads = Vec::new();
    for busy in ["enqueue", "reject", "interrupt"] {
        let settings = json!({"chat": {"busy": busy}});
        let workflow = t.workflow().graph(graph()).published().settings(settings).create().await;
        let question = PendingQuestion::start_with(&t, workflow, "order 7").await;
        let slow = t.open_chat(&chat::add(&question.workflow, &question.thread, "slow")).await;
        until("the turn to call its model", async || model.asked() == threads.len() + 1).await;
        let continuing = t.open_chat(&question.submission(positive_answer())).await;
        assert_eq!(continuing.status, 200, "{busy}");
        threads.push((busy, slow, continuing));
    }
    t.until_scalar("the threads to take the turns", "SELECT count(*) FROM run_queue", "0").await;
    model.release();
    for (busy, mut slow, mut continuing) in threads {
        let body = slow.rest().await;
        assert!(body.contains("You said: hi"), "{busy}: the turn is not interrupted: {body}");
        let body = continuing.rest().await;
        assert!(body.contains("Thank you."), "{busy}: {body}");
    }
    let overlap = "SELECT count(*) FROM runs a JOIN runs b ON a.thread_id = b.thread_id AND a.id < b.id
                   WHERE b.started_at < a.finished_at";
    assert_eq!(t.scalar(overlap).await, "0");
    assert_eq!(t.scalar(SUCCEEDED).await, "9");
}

/// Sends a request in this dialect.
async fn send(t: &TestService, dialect: &str, body: &Value) -> Answer {
    let mut headers = vec![JSON];
    if dialect == CHATKIT {
        headers.push(("chatkit-frame-instance-id", "f"));
    }
    t.send("POST", "/api/chat", &headers, body.to_string()).await.expect(200)
}

/// The dialect of the streamed text.
fn dialect_of(body: &str) -> &'static str {
    match (body.contains("\"content_part_added\""), body.contains("assistant_message.content_part.")) {
        (true, false) => INTERFACE,
        (false, true) => CHATKIT,
        found => panic!("{found:?}: {body}"),
    }
}

#[tokio::test]
async fn a_continuing_turn_uses_the_dialect_of_the_answer_or_the_ended_turn() {
    let t = TestService::start().await;
    for (ended, request, expected) in [
        (CHATKIT, Some(INTERFACE), INTERFACE),
        (INTERFACE, Some(CHATKIT), CHATKIT),
        // Answered through the runs API.
        (CHATKIT, None, CHATKIT),
        (INTERFACE, None, INTERFACE),
    ] {
        let workflow = t.workflow().graph(graph()).published().create().await;
        let question_events = events(&send(&t, ended, &chat::create(&workflow, "order 7")).await.text());
        let item = &question_events.last().unwrap()["item"];
        assert_eq!(item["status"], "pending", "{question_events:#?}");
        let of = |column: &str, which: &str| {
            format!(
                "SELECT {column} FROM runs WHERE workflow_id = '{}' AND continues IS {which}",
                workflow.id
            )
        };
        if let Some(dialect) = request {
            let params =
                json!({"thread_id": item["thread_id"], "item_id": item["id"], "input": positive_answer()});
            send(&t, dialect, &chat::ask(&workflow, "threads.add_structured_input", params)).await;
        } else {
            let run = json!({"id": t.scalar(&of("id", "NULL")).await});
            assert_eq!(answer(&t, &run, "sure", positive_answer()).await.status, 202);
        }
        let stream = t.scalar(&of("stream_id", "NOT NULL")).await;
        let body = t.resume(&stream, None).await.rest().await;
        assert_eq!(dialect_of(&body), expected, "{ended}, then {request:?}");
    }
}
