//! Retries, messages and deletions of one thread that are on their way at the same time.

use std::time::Duration;

use integration_tests::{AnswerExt, RawAnswer, TestService, Workflow, chat, events, graphs, pause, until};
use serde_json::Value;

use crate::again::{again, items, texts};

const JSON: (&str, &str) = ("content-type", "application/json");
/// Holds back requests with a key between their judgement and their start.
const HOLD: &str = "LOCK TABLE idempotency_keys IN EXCLUSIVE MODE; SELECT pg_sleep(1.5)";
const HELD: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND wait_event_type = 'Lock' AND query LIKE '%idempotency_keys%'";

async fn keyed(t: &TestService, body: &Value, key: &str) -> RawAnswer {
    t.open("POST", "/api/chat", &[JSON, ("idempotency-key", key)], body.to_string()).await
}

/// Sends a request with a key, and does something else before it gets any further than its judgement.
async fn overtaken<T>(t: &TestService, body: &Value, meanwhile: impl Future<Output = T>) -> (RawAnswer, T) {
    let hold = t.execute(HOLD);
    let others = async {
        pause(200).await;
        let other = async {
            until("the request to be held", async || t.scalar(HELD).await != "0").await;
            let done = meanwhile.await;
            assert_ne!(t.scalar(HELD).await, "0", "it is still held");
            done
        };
        tokio::join!(keyed(t, body, "k"), other)
    };
    let ((), others) = tokio::join!(hold, others);
    others
}

async fn talked(t: &TestService, workflow: &Workflow) -> (String, Vec<String>) {
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "one").await.unwrap().thread_id;
    client.say_in(&workflow.id, &thread, "two").await.unwrap();
    let (ids, _) = items(&client, workflow, &thread).await;
    (thread, ids)
}

#[tokio::test]
async fn a_retry_whose_message_was_taken_out_on_its_way_answers_nothing() {
    for text in ["You said: {{ inputs.message }}", "You said: {{ messages[-1].content }}"] {
        let t = TestService::start().await;
        let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
        let client = t.anonymous();
        let (thread, ids) = talked(&t, &workflow).await;
        let first = client.say_again(&workflow.id, &thread, &ids[0]);
        let (mut second, first) = overtaken(&t, &again(&workflow, &thread, &ids[2]), first).await;
        assert_eq!(first.unwrap().text, "You said: one");
        assert_eq!(events(&second.rest().await).pop().unwrap()["type"], "notice");
        assert_eq!(texts(&client, &workflow, &thread).await, ["one", "You said: one"]);
    }
}

#[tokio::test]
async fn nothing_runs_in_a_thread_that_was_deleted_meanwhile() {
    for text in ["said", "{{ messages | length }}"] {
        let t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
        let client = t.anonymous();
        let (thread, ids) = talked(&t, &workflow).await;
        let ran = "SELECT count(*) FROM run_steps";
        let before = t.scalar(ran).await;
        for body in [chat::add(&workflow, &thread, "three"), again(&workflow, &thread, &ids[2])] {
            t.execute("UPDATE threads SET deleted_at = NULL; DELETE FROM idempotency_keys").await;
            let delete = client.delete_thread(&workflow.id, &thread);
            let (mut late, deleted) = overtaken(&t, &body, delete).await;
            deleted.unwrap();
            assert_eq!(events(&late.rest().await).pop().unwrap()["type"], "notice");
            assert_eq!(t.scalar(ran).await, before, "nothing of it ran");
            let status = "SELECT status FROM runs ORDER BY id DESC LIMIT 1";
            assert_eq!(t.scalar(status).await, "cancelled");
        }
    }
}

/// Its turn is stored; what a crash leaves of it does not run in the next process.
#[tokio::test]
async fn a_turn_of_a_deleted_thread_does_not_go_on_after_a_restart() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 60.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("half").await;
    t.stop().await;
    t.execute("UPDATE threads SET deleted_at = now()").await;
    t.start_again().await;
    until("the turn to end", async || t.scalar("SELECT status FROM runs").await == "cancelled").await;
}

/// All of it or nothing: otherwise nobody could stop what still runs.
#[tokio::test]
async fn a_deletion_that_fails_has_deleted_nothing() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 600.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let thread = events(&answer.until("half").await)[0]["thread"]["id"].as_str().unwrap().to_owned();
    let client = t.anonymous();
    t.execute("REVOKE UPDATE ON runs FROM callboard_app").await;
    let error = client.delete_thread(&workflow.id, &thread).await.unwrap_err();
    assert!(error.status().is_some_and(|status| status >= 500), "{error:?}");
    t.execute("GRANT UPDATE ON runs TO callboard_app").await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi"]);
    t.while_time_passes(client.delete_thread(&workflow.id, &thread)).await.unwrap();
    assert_eq!(events(&answer.rest().await).pop().unwrap()["type"], "thread.item.done");
    let gone = client.thread(&workflow.id, &thread).await.err().unwrap();
    assert_eq!(gone.code(), Some("thread.not_found"));
    t.while_time_passes_in(Duration::from_millis(100), t.settled()).await;
}
