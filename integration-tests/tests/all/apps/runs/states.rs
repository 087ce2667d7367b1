//! Run states as server-sent events.

use integration_tests::{AnswerExt, RawAnswer, TestService, until};
use serde_json::json;

use super::{Published, frozen, slow};

/// The complete stream, without pings.
async fn complete_stream(mut answer: RawAnswer) -> String {
    assert_eq!(answer.status, 200);
    answer.rest().await.replace(": ping\n\n", "")
}

fn event(number: u8, state: &str) -> String {
    format!("id: {number}\ndata: {{\"state\":\"{state}\"}}\n\n")
}

#[tokio::test]
async fn readers_receive_every_state_until_the_end() {
    let t = TestService::start().await;
    let binding = frozen(&t, slow(2.0), json!({})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({})).await;
    app.running(&handle).await;
    let answer = app.open_states(&handle, &[]).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.header("cache-control"), Some("private, no-store, no-transform"));
    // A late reader receives only the current state.
    assert_eq!(complete_stream(answer).await, event(2, "running") + &event(3, "succeeded"));
    for (last, expected) in [
        (None, event(3, "succeeded")),
        (Some("1"), event(3, "succeeded")),
        (Some("x"), event(3, "succeeded")),
    ] {
        let header = last.map(|last| ("last-event-id", last));
        assert_eq!(complete_stream(app.open_states(&handle, header.as_slice()).await).await, expected);
    }
    let after_end = app.open_states(&handle, &[("last-event-id", "3")]).await;
    assert_eq!(after_end.status, 204);
}

#[tokio::test]
async fn a_reader_continues_after_its_last_event_id() {
    let t = TestService::start().await;
    let binding = frozen(&t, slow(2.0), json!({"limits": {"timeout_seconds": 1}})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({})).await;
    app.running(&handle).await;
    let answer = app.open_states(&handle, &[("last-event-id", "2")]).await;
    assert_eq!(complete_stream(answer).await, event(3, "timed_out"));
}

#[tokio::test]
async fn a_queued_run_is_streamed_to_its_end_without_node_events() {
    let t = TestService::builder().set("SERVICE_APPS_ANONYMOUS_CONCURRENT", "0").start().await;
    let binding = frozen(&t, slow(2.0), json!({})).await;
    let workflow = binding["workflow_id"].as_str().unwrap().to_owned();
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    t.execute(&format!("UPDATE workflows SET max_concurrent_runs = 1 WHERE id = '{workflow}'")).await;
    let first = app.handle("form", "a", &json!({})).await;
    app.running(&first).await;
    // The workflow has no slot for another run, which waits in the queue.
    let second = app.handle("form", "b", &json!({})).await;
    let mut answer = app.open_states(&second, &[]).await;
    assert_eq!(answer.until("\n\n").await, event(1, "queued"));
    assert_eq!(complete_stream(answer).await, event(2, "running") + &event(3, "succeeded"));
}

#[tokio::test]
async fn an_idle_stream_pings_and_a_shutdown_asks_to_reconnect() {
    let mut t = TestService::start().await;
    let binding = frozen(&t, slow(60.0), json!({"limits": {"timeout_seconds": 600}})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({})).await;
    app.running(&handle).await;
    let mut answer = app.open_states(&handle, &[]).await;
    let read = answer.until(": ping\n\n").await;
    assert_eq!(read, event(2, "running") + ": ping\n\n");
    t.leave_work();
    let stopping = t.begin_stop();
    let rest = answer.rest().await;
    assert_eq!(rest.replace(": ping\n\n", ""), "retry: 1000\n: reconnect\n\n");
    stopping.done().await;
}

#[tokio::test]
async fn a_client_reads_at_most_four_streams() {
    let t = TestService::builder().alone().start().await;
    let binding = frozen(&t, slow(60.0), json!({"limits": {"timeout_seconds": 600}})).await;
    let app = Published::new(&t, "notes", &[("form", binding)]).await;
    let handle = app.handle("form", "k", &json!({})).await;
    app.running(&handle).await;
    let mut open = Vec::new();
    for _ in 0..4 {
        let mut answer = app.open_states(&handle, &[]).await;
        answer.until("\n\n").await;
        open.push(answer);
    }
    let refused = app.open_states(&handle, &[]).await.whole().await;
    assert_eq!(refused.refusal(), "429 rate_limited");
    assert_eq!(refused.header("retry-after"), Some("5"));
    drop(open.pop());
    until("a stream is free", async || app.open_states(&handle, &[]).await.status == 200).await;
    drop(open);
    let run = t.scalar("SELECT run_id FROM app_runs").await;
    t.post(&format!("/api/runs/{run}/cancel"), "").await;
}
