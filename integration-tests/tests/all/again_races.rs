//! Concurrent retries, messages and deletions in one thread.

use std::time::Duration;

use integration_tests::{
    AnswerExt, JSON, RawAnswer, TestService, Workflow, chat, events, graphs, thread_of, until, within,
};
use serde_json::{Value, json};

use crate::again::{items, retry_request, texts};

/// Holds back requests with a key between their check and their start.
const HOLD: &str = "LOCK TABLE idempotency_keys IN EXCLUSIVE MODE";
const HELD: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                    AND wait_event_type = 'Lock' AND query LIKE '%idempotency_keys%'";

async fn send_keyed(t: &TestService, body: &Value, key: &str) -> RawAnswer {
    t.open("POST", "/api/chat", &[JSON, ("idempotency-key", key)], body.to_string()).await
}

/// Like [`keyed`], repeated until accepted: a turn's slot in its thread becomes free a moment after its end is visible.
async fn accepted(t: &TestService, body: &Value, key: &str) -> RawAnswer {
    let sending = async {
        loop {
            let answer = send_keyed(t, body, key).await;
            if answer.status != 429 {
                return answer;
            }
        }
    };
    within("a free slot in the thread", sending).await
}

/// Sends a request with a key, and runs something else before the request gets further than its check.
async fn overtaken<T>(t: &TestService, body: &Value, meanwhile: impl Future<Output = T>) -> (RawAnswer, T) {
    let hold = t.hold(HOLD).await;
    let other = async {
        until("the request to be blocked", async || t.scalar(HELD).await != "0").await;
        let done = meanwhile.await;
        assert_ne!(t.scalar(HELD).await, "0", "the request is still blocked");
        hold.release().await;
        done
    };
    tokio::join!(send_keyed(t, body, "k"), other)
}

async fn conversation(t: &TestService, workflow: &Workflow) -> (String, Vec<String>) {
    let client = t.anonymous();
    let thread = client.say(&workflow.id, "one").await.unwrap().thread_id;
    client.say_in(&workflow.id, &thread, "two").await.unwrap();
    let (ids, _) = items(&client, workflow, &thread).await;
    (thread, ids)
}

#[tokio::test]
async fn a_retry_of_a_concurrently_removed_message_is_rejected() {
    for text in ["You said: {{ inputs.message }}", "You said: {{ messages[-1].content }}"] {
        let t = TestService::start().await;
        let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
        let client = t.anonymous();
        let (thread, ids) = conversation(&t, &workflow).await;
        let first = client.say_again(&workflow.id, &thread, &ids[0]);
        let (second, first) = overtaken(&t, &retry_request(&workflow, &thread, &ids[2]), first).await;
        assert_eq!(first.unwrap().text, "You said: one");
        assert_eq!(second.whole().await.refusal(), "404 item.not_found");
        assert_eq!(texts(&client, &workflow, &thread).await, ["one", "You said: one"]);
    }
}

#[tokio::test]
async fn a_message_overtaken_by_a_retry_follows_its_answer() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let (thread, ids) = conversation(&t, &workflow).await;
    let retry = client.say_again(&workflow.id, &thread, &ids[0]);
    let (mut message, retry) = overtaken(&t, &chat::add(&workflow, &thread, "three"), retry).await;
    retry.unwrap();
    message.rest().await;
    let all = texts(&client, &workflow, &thread).await;
    assert_eq!(all, ["one", "You said: one", "three", "You said: three"]);
}

#[tokio::test]
async fn no_step_runs_in_a_concurrently_deleted_thread() {
    for text in ["said", "{{ messages | length }}"] {
        let t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(graphs::reply(text)).published().create().await;
        let client = t.anonymous();
        let (thread, ids) = conversation(&t, &workflow).await;
        let ran = "SELECT count(*) FROM run_steps";
        let before = t.scalar(ran).await;
        let delete = client.delete_thread(&workflow.id, &thread);
        let (mut late, deleted) = overtaken(&t, &chat::add(&workflow, &thread, "three"), delete).await;
        deleted.unwrap();
        assert_eq!(events(&late.rest().await).pop().unwrap()["type"], "notice");
        let status = "SELECT status FROM runs ORDER BY id DESC LIMIT 1";
        assert_eq!(t.scalar(status).await, "cancelled");
        t.execute("UPDATE threads SET deleted_at = NULL; DELETE FROM idempotency_keys").await;
        let delete = client.delete_thread(&workflow.id, &thread);
        let (late, deleted) = overtaken(&t, &retry_request(&workflow, &thread, &ids[2]), delete).await;
        deleted.unwrap();
        assert_eq!(late.whole().await.refusal(), "404 item.not_found");
        assert_eq!(t.scalar(ran).await, before, "no step ran");
    }
}

/// Its turn is stored; the next process does not continue it after a crash.
#[tokio::test]
async fn a_turn_of_a_deleted_thread_is_cancelled_after_a_restart() {
    let mut t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 60.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    answer.until("half").await;
    t.stop().await;
    t.execute("UPDATE threads SET deleted_at = now()").await;
    t.start_again().await;
    t.until_scalar("the turn to end", "SELECT status FROM runs", "cancelled").await;
}

/// All or nothing: otherwise the remaining turns could not be stopped.
#[tokio::test]
async fn a_failed_deletion_deletes_nothing() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("half", 600.0, "never")).published().create().await;
    let mut answer = t.open_chat(&chat::create(&workflow, "hi")).await;
    let thread = thread_of(&answer.until("half").await);
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

/// A thread with a running turn and the maximum number of waiting ones, and their streams.
async fn full_thread(t: &TestService, workflow: &Workflow) -> (String, Vec<String>) {
    let mut first = t.open_chat(&chat::create(workflow, "first")).await;
    let thread = thread_of(&first.until("stream_options").await);
    let mut streams = Vec::new();
    for n in 0..32 {
        let mut answer = t.open_chat(&chat::add(workflow, &thread, &format!("{n}"))).await;
        answer.until("stream_options").await;
        streams.push(answer.header("x-chat-stream-id").unwrap().to_owned());
    }
    (thread, streams)
}

/// The texts of the last two items, newest first.
async fn last_two(t: &TestService, workflow: &Workflow, thread: &str) -> [String; 2] {
    let page = json!({"thread_id": thread, "limit": 2, "order": "desc"});
    let items = t.chat(&chat::ask(workflow, "items.list", page)).await.value();
    [0, 1].map(|n| items["data"][n]["content"][0]["text"].as_str().unwrap().to_owned())
}

/// A rejected request leaves no trace: with its key it arrives later, and is placed where it is accepted.
#[tokio::test]
async fn a_message_rejected_by_a_full_thread_can_be_resent_with_its_key() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(600.0, "never")).published().create().await;
    let client = t.anonymous();
    let (thread, streams) = full_thread(&t, &workflow).await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let body = chat::add(&workflow, &thread, "late");
    let retry = retry_request(&workflow, &thread, &ids[19]);
    for (body, key) in [(&body, "k"), (&retry, "r"), (&body, "k")] {
        assert_eq!(send_keyed(&t, body, key).await.whole().await.refusal(), "429 chat.thread_busy");
    }
    t.assert_no_rows("thread_cuts").await;
    t.assert_no_rows("idempotency_keys").await;
    t.stop_turn(&streams[0]).await;
    accepted(&t, &chat::add(&workflow, &thread, "between"), "b").await.until("stream_options").await;
    t.stop_turn(&streams[1]).await;
    let mut late = accepted(&t, &body, "k").await;
    assert_eq!((late.status, late.header("idempotency-replayed")), (200, None));
    let started = late.until("stream_options").await;
    assert_eq!(last_two(&t, &workflow, &thread).await, ["late", "between"]);
    // The thread is full again; the started turn is found nevertheless.
    let mut replayed = send_keyed(&t, &body, "k").await;
    assert_eq!((replayed.status, replayed.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(replayed.until("stream_options").await, started);
    t.stop_turn(&streams[2]).await;
    let mut retried = accepted(&t, &retry, "r").await;
    assert_eq!((retried.status, retried.header("idempotency-replayed")), (200, None));
    let started = retried.until("stream_options").await;
    assert_eq!(
        last_two(&t, &workflow, &thread).await,
        ["18", "17"],
        "the items after the message are removed"
    );
    let mut replayed = send_keyed(&t, &retry, "r").await;
    assert_eq!((replayed.status, replayed.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(replayed.until("stream_options").await, started);
    t.while_time_passes(client.delete_thread(&workflow.id, &thread)).await.unwrap();
    t.while_time_passes_in(Duration::from_millis(100), t.settled()).await;
}

/// The first request with a key died before its start was stored, and the thread continued.
#[tokio::test]
async fn a_key_whose_message_was_lost_does_not_determine_its_position() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let (thread, _) = conversation(&t, &workflow).await;
    let body = chat::add(&workflow, &thread, "three");
    send_keyed(&t, &body, "k").await.rest().await;
    t.settled().await;
    let ids = "(SELECT id FROM runs ORDER BY id DESC LIMIT 1)";
    for sql in [
        "DELETE FROM thread_items WHERE id IN (SELECT id FROM thread_items ORDER BY id DESC LIMIT 2)"
            .to_owned(),
        format!("DELETE FROM stream_events WHERE stream_id IN (SELECT stream_id FROM runs WHERE id = {ids})"),
        format!("DELETE FROM streams WHERE run_id = {ids}"),
        format!("DELETE FROM run_steps WHERE run_id = {ids}"),
        format!("DELETE FROM runs WHERE id = {ids}"),
    ] {
        t.execute(&format!("SET session_replication_role = replica; {sql}")).await;
    }
    client.say_in(&workflow.id, &thread, "four").await.unwrap();
    let mut answer = send_keyed(&t, &body, "k").await;
    assert_eq!(answer.header("idempotency-replayed"), None);
    answer.rest().await;
    let all = texts(&client, &workflow, &thread).await;
    assert_eq!(all[4..], ["four", "You said: four", "three", "You said: three"]);
}

/// The replay is found whatever has happened to the message that the request named.
#[tokio::test]
async fn a_repeated_retry_is_replayed_after_its_message_is_removed() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    let (thread, ids) = conversation(&t, &workflow).await;
    let body = retry_request(&workflow, &thread, &ids[2]);
    let first = send_keyed(&t, &body, "k").await.whole().await;
    client.say_again(&workflow.id, &thread, &ids[0]).await.unwrap();
    let replayed = send_keyed(&t, &body, "k").await.whole().await;
    assert_eq!((replayed.status, replayed.header("idempotency-replayed")), (200, Some("true")));
    assert_eq!(replayed.text(), first.text());
    let other = send_keyed(&t, &retry_request(&workflow, &thread, &ids[0]), "k").await.whole().await;
    assert_eq!(other.refusal(), "422 idempotency.key_reused");
    assert_eq!(send_keyed(&t, &body, "other").await.whole().await.refusal(), "404 item.not_found");
    client.delete_thread(&workflow.id, &thread).await.unwrap();
    assert_eq!(send_keyed(&t, &body, "k").await.whole().await.refusal(), "404 thread.not_found");
}

/// In any order, each visible message is followed by its reply once, and nothing else is visible.
#[tokio::test]
async fn concurrent_retries_and_messages_leave_a_consistent_thread() {
    let t = TestService::start().await;
    let workflow = t.workflow().echo().published().create().await;
    let client = t.anonymous();
    for round in 0..8 {
        let (thread, ids) = conversation(&t, &workflow).await;
        let requests = [
            retry_request(&workflow, &thread, &ids[0]),
            retry_request(&workflow, &thread, &ids[0]),
            retry_request(&workflow, &thread, &ids[2]),
            chat::add(&workflow, &thread, "three"),
        ];
        let all = futures_util::future::join_all(requests.iter().map(|body| t.chat(body))).await;
        let statuses: Vec<u16> = all.iter().map(|answer| answer.status).collect();
        assert_eq!([statuses[0], statuses[1], statuses[3]], [200, 200, 200], "{round}: {statuses:?}");
        assert!([200, 404].contains(&statuses[2]), "{round}: {statuses:?}");
        let (shown, texts) = items(&client, &workflow, &thread).await;
        let messages: Vec<&String> = texts.iter().filter(|text| !text.starts_with("You said: ")).collect();
        let mut answers: Vec<&str> =
            texts.iter().filter_map(|text| text.strip_prefix("You said: ")).collect();
        answers.sort_unstable();
        let mut sorted = messages.clone();
        sorted.sort_unstable();
        assert_eq!(answers, sorted, "{round}: {texts:?}");
        assert_eq!((messages[0].as_str(), &shown[0]), ("one", &ids[0]));
        assert!(!texts.contains(&"two".to_owned()), "{round}: {texts:?}");
    }
    t.settled().await;
    assert_eq!(
        t.scalar("SELECT count(*) FROM runs WHERE status NOT IN ('succeeded', 'cancelled')").await,
        "0"
    );
}

/// The retry at once sends an item with the key of an item that it removes.
#[tokio::test]
async fn a_retry_does_not_replace_items_that_it_removes() {
    let t = TestService::start().await;
    let wait = json!({"name": "wait", "type": "delay", "seconds": 0.3});
    let show = json!({"name": "show", "type": "show", "kind": "task", "key": "status",
                      "task": {"type": "custom", "title": "{{ inputs.metadata.who }}"}});
    let edges = json!([{"from": "START", "cases": [{"when": "inputs.metadata.who == 'first'", "to": "wait"}], "else": "show"},
                       {"from": "wait", "to": "show"}]);
    let graph = json!({"format": "graph/1", "nodes": [wait, show], "edges": edges, "output": "Done."});
    let workflow = t.workflow().graph(graph).published().create().await;
    let with = |mut body: Value, sender: &str| {
        body["metadata"] = json!({"who": sender});
        body
    };
    let mut first = t.open_chat(&with(chat::create(&workflow, "hi"), "first")).await;
    let beginning = first.until("stream_options").await;
    let thread = thread_of(&beginning);
    let client = t.anonymous();
    let question = client.thread(&workflow.id, &thread).await.unwrap().items.data[0].id.clone();
    let mut retry = t.open_chat(&with(retry_request(&workflow, &thread, &question), "second")).await;
    first.rest().await;
    let stream_events = events(&retry.rest().await);
    let kinds: Vec<&str> = stream_events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(!kinds.contains(&"thread.item.replaced"), "{kinds:?}");
    let items = client.thread(&workflow.id, &thread).await.unwrap().items.data;
    let shown = serde_json::to_value(&items[1]).unwrap();
    assert_eq!((items.len(), &shown["task"]["title"]), (2, &json!("second")));
    assert!(
        stream_events.iter().any(|event| event["item"]["id"] == shown["id"]),
        "the reader has received the item"
    );
}
