//! Two instances on one database: each finds the other's stored data.

use std::time::Duration;

use integration_tests::{AnswerExt, JSON, TestService, chat, graphs, until, within};
use kernel::Clock;
use serde_json::{Value, json};

use crate::waiting_runs::{answer, becomes, begin, record};

#[tokio::test]
async fn a_run_is_stopped_through_another_instance_within_a_second() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = t
        .workflow()
        .graph(graphs::chain(&[json!({"name": "d", "type": "delay", "seconds": 9})], None))
        .create()
        .await;
    let run = begin(&t, &workflow, "", json!({})).await;
    becomes(&t, &run, "running").await;
    let clock = kernel::SystemClock::new();
    let began = clock.monotonic();
    let stopped = other.post(&format!("/api/runs/{}/cancel", run["id"].as_str().unwrap()), "").await;
    assert_eq!(stopped.value()["status"], "cancelled", "{}", stopped.text());
    // The other instance is notified within 200 ms; the rest is for a busy machine. By itself, the run ends after nine
    // seconds.
    let took = clock.monotonic() - began;
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[tokio::test]
async fn answers_and_turns_reach_the_instance_that_runs_them() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = t
        .workflow()
        .graph(graphs::chain(&[json!({"name": "ok", "type": "wait_for_input"})], None))
        .create()
        .await;
    let run = within("the run waits", begin(&t, &workflow, "?wait=60", json!({}))).await;
    assert_eq!(run["status"], "waiting");
    assert_eq!(answer(&other, &run, "ok", json!(1)).await.status, 202);
    becomes(&t, &run, "succeeded").await;
    // A chat turn waits on its instance, and the other one forwards the answer.
    let graph = graphs::chain(
        &[
            json!({"name": "ok", "type": "wait_for_input"}),
            json!({"name": "say", "type": "reply", "text": "thanks"}),
        ],
        None,
    );
    let chatting = t.workflow().graph(graph).published().create().await;
    let message = chat::create(&chatting, "hi");
    let turn = t.chat(&message);
    let helper = async {
        let open = "SELECT coalesce(max(run_id::text), '') FROM run_questions WHERE answered_at IS NULL";
        until("the turn to ask", async || !t.scalar(open).await.is_empty()).await;
        let run = json!({"id": t.scalar(open).await});
        assert_eq!(answer(&other, &run, "ok", json!(1)).await.status, 202);
    };
    let (turn, ()) = within("the turn ends", async { futures_util::join!(turn, helper) }).await;
    assert!(turn.text().contains("thanks"), "{}", turn.text());
}

#[tokio::test]
async fn waiting_runs_are_taken_over_by_the_remaining_instance() {
    let mut t = TestService::start().await;
    let other = t.another_instance().await;
    let workflow = t
        .workflow()
        .graph(graphs::chain(&[json!({"name": "ok", "type": "wait_for_input"})], None))
        .create()
        .await;
    let run = begin(&t, &workflow, "?wait=60", json!({})).await;
    t.stop().await;
    assert_eq!(answer(&other, &run, "ok", json!(1)).await.status, 202);
    becomes(&other, &run, "succeeded").await;
    assert_eq!(record(&other, &run).await["output"]["ok"]["value"], 1);
}

#[tokio::test]
async fn turns_of_a_thread_run_in_order_across_two_instances() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let graph = graphs::interrupted("one", 2.0, "two");
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "a")).await;
    until("the first step to start", async || t.scalar("SELECT count(*)::text FROM run_steps").await != "0")
        .await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    let mut second = other.open_chat(&chat::add(&workflow, &thread, "b")).await;
    let (first, second) =
        within("both turns to end", async { futures_util::join!(first.rest(), second.rest()) }).await;
    assert!(first.contains("two") && second.contains("two"));
    let overlap = "SELECT (max(started_at) >= min(finished_at))::text FROM runs";
    assert_eq!(t.scalar(overlap).await, "true", "the second started after the end of the first");
}

/// The last item, as models and pages read it.
async fn last_item(t: &TestService, workflow: &str, thread: &str) -> Value {
    let list = json!({"type": "items.list", "workflow_id": workflow,
                      "params": {"thread_id": thread, "order": "desc", "limit": 3}});
    t.chat(&list).await.value()["data"][0].clone()
}

/// A client that only reads on another instance counts as a reader.
#[tokio::test]
async fn a_turn_continues_while_any_instance_has_a_reader() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "2").start().await;
    let other = t.another_instance().await;
    let graph = graphs::interrupted("First. ", 8.0, "Second.");
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut here = t.open_chat(&chat::create(&workflow, "hi")).await;
    let first = here.until("First.").await;
    let stream = here.header("x-chat-stream-id").unwrap().to_owned();
    let thread = first.split("\"thr_").nth(1).map(|rest| format!("thr_{}", &rest[..32])).unwrap();
    let mut there = other.resume(&stream, None).await;
    there.until("First.").await;
    // This instance's only reader leaves, for four times the grace period.
    drop(here);
    let rest = within("the end on the other instance", there.rest()).await;
    assert!(rest.contains("Second.") && rest.contains("thread.item.done"), "{rest}");
    let item = last_item(&other, &workflow.id, &thread).await;
    assert_eq!((&item["status"], &item["content"][0]["text"]), (&Value::Null, &json!("First. Second.")));
    t.until_scalar("the presence to end", "SELECT count(*) FROM stream_readers", "0").await;
    // Without readers, the turn is abandoned, and every read shows it.
    let workflow =
        t.workflow().graph(graphs::interrupted("First. ", 60.0, "Never.")).published().create().await;
    let mut unread = t.open_chat(&chat::create(&workflow, "again")).await;
    let first = unread.until("First.").await;
    let thread = first.split("\"thr_").nth(1).map(|rest| format!("thr_{}", &rest[..32])).unwrap();
    drop(unread);
    until("the turn to be abandoned", async || {
        last_item(&t, &workflow.id, &thread).await["reason"] == "abandoned"
    })
    .await;
    let item = last_item(&other, &workflow.id, &thread).await;
    assert_eq!((&item["status"], &item["content"][0]["text"]), (&json!("incomplete"), &json!("First. ")));
}

/// A stop waits for the stream's end on its own instance, and readers there lose nothing.
#[tokio::test]
async fn a_stop_on_a_readers_instance_loses_no_event() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let pieces = json!({"name": "say", "type": "reply", "pieces": "words", "pause_ms": 50,
                        "text": (0..400).map(|n| n.to_string()).collect::<Vec<_>>().join(" ")});
    let workflow = t.workflow().graph(graphs::chain(&[pieces], None)).published().create().await;
    for _ in 0..5 {
        let mut here = t.open_chat(&chat::create(&workflow, "hi")).await;
        let stream = here.header("x-chat-stream-id").unwrap().to_owned();
        let mut there = other.resume(&stream, None).await;
        let mut read = there.until("10 ").await;
        // Another reader gets the latest events from the database.
        let mut late = other.resume(&stream, None).await;
        late.until("10 ").await;
        assert_eq!(other.stop_turn(&stream).await.status, 200);
        read.push_str(&within("the stream to end on the other instance", there.rest()).await);
        let whole = within("the stream to end on this instance", here.rest()).await;
        let data = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| line.starts_with("data: "));
            lines.filter(|line| !line.contains("stream.live")).map(str::to_owned).collect()
        };
        assert!(read.contains("thread.item.done"), "{read}");
        assert_eq!(data(&read), data(&whole));
    }
}

/// Turns in a thread never overlap, whatever the clocks of two instances, and in any message order.
#[tokio::test]
async fn turns_of_a_thread_never_overlap_while_an_instance_joins() {
    let t = TestService::start().await;
    let graph = graphs::interrupted("one", 0.4, "two");
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut first = t.open_chat(&chat::create(&workflow, "a")).await;
    let beginning = first.until("one").await;
    let thread = beginning.split("\"thr_").nth(1).map(|rest| format!("thr_{}", &rest[..32])).unwrap();
    let sending = |service: &TestService, n: usize| {
        let body = chat::add(&workflow, &thread, &n.to_string());
        let client = service.visitor();
        async move { client.send("POST", "/api/chat", &[JSON], body.to_string()).await }
    };
    // The first instance continues working while the second one joins.
    let mut sent: Vec<_> = (0..6).map(|n| tokio::spawn(sending(&t, n))).collect();
    let other = t.another_instance().await;
    for n in 6..14 {
        sent.push(tokio::spawn(sending(if n % 2 == 0 { &other } else { &t }, n)));
    }
    for answer in sent {
        let answer = within("an answer", answer).await.unwrap().unwrap();
        assert!(answer.text().contains("two"), "{}", answer.text());
    }
    first.rest().await;
    let overlaps = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id
                    WHERE a.started_at < b.finished_at AND b.started_at < a.finished_at";
    assert_eq!(t.scalar(overlaps).await, "0");
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE status = 'succeeded'").await, "15");
}

/// A reader on a killed instance counts for six more seconds; then the grace period begins.
#[tokio::test]
async fn the_presence_of_readers_ends_with_their_instance() {
    let t = TestService::builder().set("SERVICE_CHAT_DISCONNECT_GRACE", "1").start().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("First. ", 60.0, "Never.")).published().create().await;
    let mut here = t.open_chat(&chat::create(&workflow, "hi")).await;
    here.until("First.").await;
    let stream = here.header("x-chat-stream-id").unwrap().to_owned();
    // The announcement of an instance that then dies.
    let announce = format!(
        "INSERT INTO stream_readers VALUES ('{stream}', gen_random_uuid(), now() + interval '6 seconds')"
    );
    t.execute(&announce).await;
    let (clock, before) = (kernel::SystemClock::new(), kernel::SystemClock::new().now());
    drop(here);
    t.until_scalar("the turn to end", "SELECT status FROM runs", "cancelled").await;
    let lived = clock.now() - before;
    assert!(lived >= chrono::TimeDelta::seconds(6), "{lived}");
    let error = t.scalar("SELECT error::jsonb->>'code' FROM runs").await;
    assert_eq!(error, "run.abandoned");
}

/// One statement serves all readers of another instance's streams.
#[tokio::test]
async fn events_of_another_instance_arrive_soon_through_one_statement() {
    let t = TestService::start().await;
    let other = t.another_instance().await;
    let pieces = json!({"name": "say", "type": "reply", "pieces": "words", "pause_ms": 100,
                        "text": "one two three four five six seven eight nine ten"});
    let workflow = t.workflow().graph(graphs::chain(&[pieces], None)).published().create().await;
    let mut here = t.open_chat(&chat::create(&workflow, "hi")).await;
    let stream = here.header("x-chat-stream-id").unwrap().to_owned();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(other.resume(&stream, None).await);
    }
    let whole = within("the stream to end on this instance", here.rest()).await;
    for mut reader in readers {
        let read = within("the stream to end on the other instance", reader.rest()).await;
        let data = |text: &str| -> Vec<String> {
            text.lines().filter(|line| line.starts_with("data: ")).map(str::to_owned).collect()
        };
        let live = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().filter(|line| !line.contains("stream.live")).collect()
        };
        assert_eq!(live(data(&read)), live(data(&whole)));
    }
}
