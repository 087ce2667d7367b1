//! A message during a running turn: it waits, is rejected, or interrupts.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, Workflow, chat, graphs, until};
use serde_json::{Value, json};

async fn with_policy(t: &TestService, busy: &str) -> Workflow {
    let graph = graphs::interrupted("first", 60.0, "second");
    let workflow = t.workflow().graph(graph).published().create().await;
    let changed = t.configure(&workflow, &json!({"chat": {"busy": busy}})).await;
    assert_eq!((changed.status, &changed.value()["chat"]["busy"]), (200, &json!(busy)));
    workflow
}

/// Starts a turn that takes a while; returns its response and the thread.
async fn start_slow_turn(t: &TestService, workflow: &Workflow) -> (integration_tests::RawAnswer, String) {
    let open = t.open_chat(&chat::create(workflow, "one")).await;
    until("the first words to be sent", async || {
        t.scalar("SELECT count(*)::text FROM run_steps WHERE finished_at IS NOT NULL").await == "1"
    })
    .await;
    let thread = t.scalar("SELECT 'thr_' || replace(id::text, '-', '') FROM threads").await;
    (open, thread)
}

#[tokio::test]
async fn a_second_message_may_be_rejected() {
    let t = TestService::with_manual_clock().await;
    let workflow = with_policy(&t, "reject").await;
    let (mut open, thread) = start_slow_turn(&t, &workflow).await;
    let refused = t.chat(&chat::add(&workflow, &thread, "two")).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "chat.turn_running"), "{}", refused.text());
    assert_eq!(t.scalar("SELECT count(*)::text FROM runs").await, "1");
    let step = Duration::from_secs(1);
    assert!(t.while_time_passes_in(step, open.rest()).await.contains("second"));
    let mut accepted = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
    assert_eq!(accepted.status, 200, "accepted as soon as the reply is complete");
    let run = t.scalar("SELECT id::text FROM runs ORDER BY id DESC LIMIT 1").await;
    let cancel = format!("/api/runs/{run}/cancel");
    t.while_time_passes(t.post(&cancel, "")).await;
    t.while_time_passes(accepted.rest()).await;
}

#[tokio::test]
async fn a_message_after_a_complete_reply_is_never_rejected() {
    let t = TestService::start().await;
    let workflow = with_policy(&t, "reject").await;
    let echo = json!({"graph": graphs::reply("You said: {{ inputs.message }}")});
    assert_eq!(t.post(&workflow.path("/versions"), &echo.to_string()).await.status, 201);
    let client = t.visitor();
    let thread = client.say(&workflow.id, "first").await.unwrap().thread_id;
    for n in 0..30 {
        let turn = client.say_in(&workflow.id, &thread, &n.to_string()).await.unwrap();
        assert_eq!(turn.text, format!("You said: {n}"));
    }
}

/// The first one is accepted, and no others.
#[tokio::test]
async fn only_one_of_concurrent_messages_is_accepted() {
    let t = TestService::with_manual_clock().await;
    let workflow = with_policy(&t, "reject").await;
    let (mut open, thread) = start_slow_turn(&t, &workflow).await;
    t.while_time_passes_in(Duration::from_secs(1), open.rest()).await;
    let sending = (0..8).map(async |n: u8| t.open_chat(&chat::add(&workflow, &thread, &n.to_string())).await);
    let sent = futures_util::future::join_all(sending).await;
    let mut statuses: Vec<u16> = sent.iter().map(|answer| answer.status).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409, 409, 409]);
    assert_eq!(t.scalar("SELECT count(*)::text FROM runs").await, "2");
    let mut accepted = sent.into_iter().find(|answer| answer.status == 200).unwrap();
    t.while_time_passes_in(Duration::from_secs(1), accepted.rest()).await;
}

#[tokio::test]
async fn a_second_message_may_interrupt_the_first() {
    let t = TestService::with_manual_clock().await;
    let workflow = with_policy(&t, "interrupt").await;
    let (mut open, thread) = start_slow_turn(&t, &workflow).await;
    let mut second = t.while_time_passes(t.open_chat(&chat::add(&workflow, &thread, "two"))).await;
    assert_eq!(second.status, 200);
    let first = t.while_time_passes(open.rest()).await;
    assert!(first.contains("first") && !first.contains("second"), "{first}");
    assert_eq!(t.scalar("SELECT status FROM runs ORDER BY id LIMIT 1").await, "cancelled");
    let step = Duration::from_secs(1);
    assert!(t.while_time_passes_in(step, second.rest()).await.contains("second"));
}

#[tokio::test]
async fn an_unknown_policy_is_reported() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let refused = t.configure(&workflow, &json!({"chat": {"busy": "queue"}})).await;
    let problem: Value = refused.value()["detail"]["errors"][0].clone();
    assert_eq!(
        (refused.status, &problem["pointer"], &problem["code"]),
        (422, &json!("/chat/busy"), &json!("choice"))
    );
}
