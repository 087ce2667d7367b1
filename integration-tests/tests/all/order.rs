//! One turn at a time in a thread; the others wait in order.

use std::time::Duration;

use insta::assert_snapshot;
use integration_tests::{
    AnswerExt, RawAnswer, TestService, Workflow, chat, events, graphs, shown, thread_of, until,
};
use serde_json::Value;

/// A running turn and its thread.
async fn running(t: &TestService, workflow: &Workflow) -> (RawAnswer, String) {
    let mut first = t.open_chat(&chat::create(workflow, "first")).await;
    let beginning = first.until("stream_options").await;
    (first, thread_of(&beginning))
}

fn reply(body: &str) -> Value {
    events(body).pop().unwrap()["item"]["content"][0]["text"].clone()
}

#[tokio::test]
async fn a_message_in_a_busy_thread_waits_with_its_stream_open() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::delayed(5.0, "{{ inputs.message }}!")).published().create().await;
    let (mut first, thread) = running(&t, &workflow).await;
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await.expect(200);
    let first_events = events(&second.until("stream_options").await);
    assert_eq!(first_events[0]["item"]["content"][0]["text"], "second", "its user item is sent immediately");
    assert_eq!(first_events.len(), 2);
    assert!(second.is_silent_for(200).await);
    until("the first to run", async || {
        t.scalar("SELECT string_agg(status, ' ' ORDER BY id) FROM runs").await == "running queued"
    })
    .await;
    let first = t.while_time_passes(first.rest()).await;
    assert_eq!(reply(&first), "first!");
    t.until_scalar("the second turn to run", "SELECT status FROM runs ORDER BY id DESC LIMIT 1", "running")
        .await;
    let second = t.while_time_passes(second.rest()).await;
    assert_eq!(reply(&second), "second!");
    let overlap = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id WHERE b.started_at < a.finished_at";
    assert_eq!(t.scalar(overlap).await, "0");
}

#[tokio::test]
async fn thirty_two_messages_wait_and_the_next_is_429() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::delayed(1.0, "{{ inputs.message }}")).published().create().await;
    let (first, thread) = running(&t, &workflow).await;
    let mut open = vec![first];
    for index in 0..32 {
        open.push(t.open_chat(&chat::add(&workflow, &thread, &format!("waits {index}"))).await);
        assert_eq!(open.last().unwrap().status, 200, "{index}");
    }
    for _ in 0..3 {
        t.chat(&chat::add(&workflow, &thread, "too much")).await.expect(429);
    }
    let refused = t.chat(&chat::add(&workflow, &thread, "too much")).await;
    assert_snapshot!(shown(&refused), @r#"
    429
    content-type: application/json
    retry-after: 1
    {"detail":{"message":"Too many messages wait in this thread.","code":"chat.thread_busy"}}
    "#);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "33");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items WHERE content LIKE '%too much%'").await, "0");
    // Another thread is not affected.
    let mut other = t.open_chat(&chat::create(&workflow, "elsewhere")).await;
    t.while_time_passes_in(Duration::from_millis(100), async {
        for (index, answer) in open.iter_mut().enumerate() {
            let expected = if index == 0 { "first".to_owned() } else { format!("waits {}", index - 1) };
            assert_eq!(reply(&answer.rest().await), expected);
        }
        other.rest().await;
    })
    .await;
    let order = "SELECT count(*) FROM runs a JOIN runs b ON a.thread_id = b.thread_id AND a.id < b.id
                 WHERE b.started_at < a.finished_at";
    assert_eq!(t.scalar(order).await, "0");
    let mut again = t.open_chat(&chat::add(&workflow, &thread, "there is room again")).await.expect(200);
    t.while_time_passes(again.rest()).await;
}

#[tokio::test]
async fn different_threads_run_concurrently() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(5.0, "done")).published().create().await;
    let mut open = Vec::new();
    for _ in 0..50 {
        open.push(t.open_chat(&chat::create(&workflow, "hi")).await);
    }
    let running = "SELECT count(*) FROM runs WHERE status IN ('running', 'waiting')";
    t.until_scalar("all of them to run", running, "50").await;
    t.while_time_passes_in(Duration::from_millis(100), async {
        for answer in &mut open {
            assert_eq!(reply(&answer.rest().await), "done");
        }
    })
    .await;
}

#[tokio::test]
async fn concurrent_messages_are_answered_one_after_another() {
    let t = TestService::start().await;
    let workflow =
        t.workflow().graph(graphs::words("{{ inputs.message }} is answered", 2)).published().create().await;
    let client = t.visitor();
    let thread = client.say(&workflow.id, "first").await.unwrap().thread_id;
    let sending = (0..20).map(|index| {
        let (client, workflow, thread) = (client.clone(), workflow.id.clone(), thread.clone());
        async move {
            let turn = client.say_in(&workflow, &thread, &format!("number {index}")).await.unwrap();
            assert_eq!(turn.text, format!("number {index} is answered"));
        }
    });
    futures_util::future::join_all(sending).await;
    // The order is undefined: the thread may learn of the second before the first.
    let together = "SELECT count(*) FROM runs a JOIN runs b ON a.id < b.id
                    WHERE a.started_at < b.finished_at AND b.started_at < a.finished_at";
    assert_eq!(t.scalar(together).await, "0");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items").await, "42");
}
