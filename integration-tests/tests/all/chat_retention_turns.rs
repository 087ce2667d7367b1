//! Retention of threads whose turn has not ended.

use std::time::Duration;

use integration_tests::{RawAnswer, TestService, Workflow, chat, until};
use serde_json::{Value, json};

use crate::waiting_runs::answer;

const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);
/// A retention round starts every hour.
const STEP: Duration = Duration::from_secs(600);

/// Waits for a person, waits ten days, or speaks for long, as the message says; otherwise the turn ends.
fn turn_graph() -> Value {
    let case = |word: &str| json!({"when": format!("inputs.message == '{word}'"), "to": word});
    let cases = ["person", "days", "slow"].map(case);
    json!({"format": "graph/1", "nodes": [
        {"name": "checking", "type": "reply", "text": "Checking."},
        {"name": "person", "type": "wait_for_input", "message": "Well?"},
        {"name": "days", "type": "delay", "seconds": 864_000},
        {"name": "slow", "type": "reply", "text": "word ".repeat(2_000), "pieces": "words", "pause_ms": 60_000},
        {"name": "done", "type": "reply", "text": "Done.", "new_message": true}],
      "edges": [{"from": "START", "to": "checking"},
        {"from": "checking", "cases": cases, "else": "END"},
        {"from": "person", "to": "done"}, {"from": "days", "to": "done"}, {"from": "done", "to": "END"},
        {"from": "slow", "to": "END"}]})
}

async fn with_retention_days(t: &TestService, days: u32) -> Workflow {
    let settings = json!({"chat": {"retention_days": days}});
    t.workflow().graph(turn_graph()).published().settings(settings).create().await
}

/// Starts a thread with the message as its title; reads its stream up to this text.
async fn start_turn(t: &TestService, workflow: &Workflow, message: &str, text: &str) -> RawAnswer {
    let mut open = t.while_time_passes(t.open_chat(&chat::create(workflow, message))).await;
    t.while_time_passes(open.until(text)).await;
    open
}

/// Starts three threads: one with an ended turn, one with a running turn, and one whose turn waits for a person.
/// Returns the second one's stream.
async fn three_threads(t: &TestService, workflow: &Workflow) -> RawAnswer {
    t.while_time_passes(t.chat(&chat::create(workflow, "ended"))).await;
    start_turn(t, workflow, "person", "\"clock\"").await;
    start_turn(t, workflow, "slow", "word").await
}

/// Waits until this many turns are parked.
async fn wait_for_parked(t: &TestService, turns: &str) {
    let parked = async || t.scalar("SELECT count(*) FROM runs WHERE status = 'waiting'").await == turns;
    t.while_time_passes(until("the turn is parked", parked)).await;
}

/// The titles of the undeleted threads.
async fn remaining_titles(t: &TestService) -> String {
    t.scalar(
        "SELECT coalesce(string_agg(title, ' ' ORDER BY title), '') FROM threads WHERE deleted_at IS NULL",
    )
    .await
}

/// Waits until retention has deleted the thread with the ended turn.
async fn wait_for_deletion(t: &TestService) {
    let deleted = async || !remaining_titles(t).await.contains("ended");
    t.while_time_passes_in(STEP, until("the thread is deleted", deleted)).await;
}

/// Stops the running turn, and answers the waiting one.
async fn end_turns(t: &TestService, slow: RawAnswer) {
    assert_eq!(t.stop_turn(slow.header("x-chat-stream-id").unwrap()).await.status, 200);
    let run = t
        .scalar("SELECT r.id FROM runs r JOIN threads t ON t.id = r.thread_id WHERE t.title = 'person'")
        .await;
    assert_eq!(answer(t, &json!({"id": run}), "person", json!(1)).await.status, 202);
    wait_for_end(t, &["person", "slow"]).await;
}

async fn wait_for_end(t: &TestService, titles: &[&str]) {
    let open = format!(
        "SELECT count(*) FROM runs r JOIN threads t ON t.id = r.thread_id
         WHERE r.finished_at IS NULL AND t.title IN ('{}')",
        titles.join("', '")
    );
    t.while_time_passes(until("the turns end", async || t.scalar(&open).await == "0")).await;
}

/// Restarts the service, which starts a retention round, and waits for its end, where it deletes unused blobs.
async fn run_retention_round(t: &mut TestService) {
    // A round in progress must not delete the mark.
    t.stop().await;
    t.execute("INSERT INTO blobs (digest, size, created_at) VALUES (sha256('round'), 5, '2020-01-01')").await;
    t.start_again().await;
    let left = "SELECT count(*) FROM blobs WHERE digest = sha256('round')";
    t.until_scalar("a round of retention ends", left, "0").await;
}

#[tokio::test]
async fn threads_are_kept_until_their_running_or_parked_turn_has_ended() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = with_retention_days(&t, 1).await;
    start_turn(&t, &workflow, "days", "\"clock\"").await;
    let slow = three_threads(&t, &workflow).await;
    wait_for_parked(&t, "2").await;
    t.advance(DAY + 2 * HOUR);
    wait_for_deletion(&t).await;
    assert_eq!(remaining_titles(&t).await, "days person slow");
    assert_eq!(t.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await, "3");

    // Their last items are new.
    end_turns(&t, slow).await;
    run_retention_round(&mut t).await;
    assert_eq!(remaining_titles(&t).await, "days person slow");
    t.advance(DAY + HOUR);
    run_retention_round(&mut t).await;
    assert_eq!(remaining_titles(&t).await, "days");

    t.advance(9 * DAY);
    wait_for_end(&t, &["days"]).await;
    run_retention_round(&mut t).await;
    assert_eq!(remaining_titles(&t).await, "days");
    t.advance(DAY + HOUR);
    run_retention_round(&mut t).await;
    assert_eq!(remaining_titles(&t).await, "");

    // A day later, their content is deleted.
    t.advance(DAY + HOUR);
    run_retention_round(&mut t).await;
    for table in ["thread_items", "runs", "run_steps", "run_questions", "streams"] {
        t.assert_no_rows(table).await;
    }
}

#[tokio::test]
async fn without_retention_content_is_deleted_an_hour_after_the_turn_ends() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = with_retention_days(&t, 0).await;
    let slow = three_threads(&t, &workflow).await;
    wait_for_parked(&t, "1").await;
    t.advance(2 * HOUR);
    wait_for_deletion(&t).await;
    let contents = "SELECT count(*) FROM runs WHERE inputs <> '{}'";
    assert_eq!(
        (remaining_titles(&t).await.as_str(), t.scalar(contents).await.as_str()),
        ("person slow", "2")
    );
    let messages = "SELECT count(*) FROM thread_items WHERE content LIKE '%\"user_message\"%'";
    assert_eq!(t.scalar(messages).await, "2");

    end_turns(&t, slow).await;
    t.advance(HOUR / 2);
    run_retention_round(&mut t).await;
    assert_eq!(
        (remaining_titles(&t).await.as_str(), t.scalar(contents).await.as_str()),
        ("person slow", "2")
    );
    t.advance(HOUR);
    run_retention_round(&mut t).await;
    assert_eq!((remaining_titles(&t).await.as_str(), t.scalar(contents).await.as_str()), ("", "0"));
    t.assert_no_rows("thread_items").await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "3", "their times and status are kept");
}
