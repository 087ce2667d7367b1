//! Two instances on one database: each finds what the other has stored.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, graphs, until, within};
use kernel::Clock;
use serde_json::json;

use crate::waiting_runs::{answer, becomes, begin, record};

async fn beside(t: &TestService) -> TestService {
    TestService::builder().set("SERVICE_POSTGRES_DSN", &t.variables()["SERVICE_POSTGRES_DSN"]).start().await
}

/// Until each knows of the other.
async fn acquainted() {
    integration_tests::pause(4_500).await;
}

#[tokio::test]
async fn a_run_is_stopped_over_another_instance_within_a_second() {
    let t = TestService::start().await;
    let other = beside(&t).await;
    acquainted().await;
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
    // The other hears of it within 200 ms; the rest is for a busy machine. By itself the run ends after nine.
    let took = clock.monotonic() - began;
    assert!(took < Duration::from_secs(8), "{took:?}");
}

#[tokio::test]
async fn answers_and_turns_go_to_whoever_is_there() {
    let t = TestService::start().await;
    let other = beside(&t).await;
    acquainted().await;
    let workflow = t
        .workflow()
        .graph(graphs::chain(&[json!({"name": "ok", "type": "wait_for_input"})], None))
        .create()
        .await;
    let run = within("the run waits", begin(&t, &workflow, "?wait=60", json!({}))).await;
    assert_eq!(run["status"], "waiting");
    assert_eq!(answer(&other, &run, "ok", json!(1)).await.status, 202);
    becomes(&t, &run, "succeeded").await;
    // A turn of the chat waits where it is, and is told by the other.
    let graph = graphs::chain(
        &[
            json!({"name": "ok", "type": "wait_for_input"}),
            json!({"name": "say", "type": "reply", "text": "thanks"}),
        ],
        None,
    );
    let chat = t.workflow().graph(graph).published().create().await;
    let message = integration_tests::chat::create(&chat, "hi");
    let turn = t.chat(&message);
    let helper = async {
        let open = "SELECT coalesce(max(run_id::text), '') FROM run_questions WHERE answered_at IS NULL";
        until("it asks", async || !t.scalar(open).await.is_empty()).await;
        let run = json!({"id": t.scalar(open).await});
        assert_eq!(answer(&other, &run, "ok", json!(1)).await.status, 202);
    };
    let (turn, ()) = within("the turn ends", async { futures_util::join!(turn, helper) }).await;
    assert!(turn.text().contains("thanks"), "{}", turn.text());
}

#[tokio::test]
async fn what_waits_is_taken_by_the_instance_that_is_left() {
    let mut t = TestService::start().await;
    let other = beside(&t).await;
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
async fn turns_of_a_thread_come_in_order_over_two_instances() {
    let t = TestService::start().await;
    let other = beside(&t).await;
    acquainted().await;
    let graph = graphs::interrupted("one", 2.0, "two");
    let workflow = t.workflow().graph(graph).published().create().await;
    let mut first = t.open_chat(&integration_tests::chat::create(&workflow, "a")).await;
    until("it is said", async || t.scalar("SELECT count(*)::text FROM run_steps").await != "0").await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    let mut second = other.open_chat(&integration_tests::chat::add(&workflow, &thread, "b")).await;
    let (first, second) =
        within("both end", async { futures_util::join!(first.rest(), second.rest()) }).await;
    assert!(first.contains("two") && second.contains("two"));
    let overlap = "SELECT (max(started_at) >= min(finished_at))::text FROM runs";
    assert_eq!(t.scalar(overlap).await, "true", "the second began behind the end of the first");
}
