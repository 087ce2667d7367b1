//! Retries and messages that wait for their turn while others are stopped, removed or deleted.

use std::time::Duration;

use integration_tests::{AnswerExt, RawAnswer, TestService, chat, events, graphs, last_event, until};
use serde_json::{Value, json};

use crate::again::{items, retry_request, running, texts};

/// Waits, says something, waits, says more.
fn two_delayed_replies(text: &str) -> Value {
    let say = |name: &str, text: &str| json!({"name": name, "type": "reply", "text": text});
    graphs::chain(
        &[
            graphs::busy("before", 5.0),
            say("first", text),
            graphs::busy("between", 60.0),
            say("second", " done"),
        ],
        None,
    )
}

fn stream_id(answer: &RawAnswer) -> String {
    answer.header("x-chat-stream-id").unwrap().to_owned()
}

async fn statuses(t: &TestService) -> String {
    t.scalar("SELECT string_agg(status, ' ' ORDER BY id) FROM runs").await
}

/// The retry removes the items that existed when it was requested, and none of the later ones.
#[tokio::test]
async fn a_retry_stopped_while_queued_removes_no_later_items() {
    for restarted in [false, true] {
        let mut t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(two_delayed_replies("so far")).published().create().await;
        let client = t.anonymous();
        let (mut first, thread) = running(&t, &workflow, "hi").await;
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
        retry.until("stream_options").await;
        t.while_time_passes(first.until("so far")).await;
        let step = Duration::from_secs(1);
        if restarted {
            // The cancellation is stored, and the process ends before it is delivered.
            t.execute("UPDATE runs SET cancel_requested_at = now() WHERE status = 'queued'").await;
            t.restart().await;
            first = t.resume(&stream_id(&first), None).await;
            retry = t.resume(&stream_id(&retry), None).await;
            assert_eq!(
                last_event(&t.while_time_passes_in(step, first.rest()).await)["type"],
                "thread.item.done"
            );
        } else {
            let stopped = t.stop_turn(&stream_id(&retry)).await;
            assert_eq!(stopped.value(), json!({"status": "stopped"}));
            assert_eq!(
                last_event(&t.while_time_passes_in(step, first.rest()).await)["type"],
                "thread.item.done"
            );
        }
        assert_eq!(last_event(&t.while_time_passes_in(step, retry.rest()).await)["type"], "notice");
        assert_eq!(statuses(&t).await, "succeeded cancelled");
        assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "so far done"], "restarted: {restarted}");
        let second = t.visitor();
        let answered = second.say_in(&workflow.id, &thread, "more");
        let turn = t.while_time_passes_in(step, answered).await.unwrap();
        assert_eq!(turn.text, "so far done");
    }
}

/// The retry was requested while a reply was being written; the complete reply follows the message.
#[tokio::test]
async fn a_stopped_retry_has_removed_the_items_that_existed_at_its_request() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        t.workflow().graph(graphs::interrupted("so far", 60.0, " done")).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "hi").await;
    first.until("so far").await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
    t.stop_turn(&stream_id(&retry)).await;
    assert_eq!(last_event(&retry.rest().await)["type"], "notice");
    t.while_time_passes_in(Duration::from_secs(1), first.rest()).await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi"]);
}

/// Its side effects would be useless, and a model would get a history with another end.
#[tokio::test]
async fn messages_removed_by_a_retry_are_not_answered() {
    for (restarted, text) in [(false, "said"), (false, "{{ messages | length }}"), (true, "said")] {
        let mut t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(graphs::delayed(5.0, text)).published().create().await;
        let client = t.anonymous();
        let (mut first, thread) = running(&t, &workflow, "first").await;
        let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
        second.until("stream_options").await;
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
        retry.until("stream_options").await;
        let mut third = t.open_chat(&chat::add(&workflow, &thread, "third")).await;
        third.until("stream_options").await;
        if restarted {
            t.restart().await;
            for answer in [&mut first, &mut second, &mut retry, &mut third] {
                *answer = t.resume(&stream_id(answer), None).await;
            }
        }
        t.while_time_passes_in(Duration::from_millis(100), async {
            assert_eq!(last_event(&first.rest().await)["type"], "thread.item.done");
            assert_eq!(last_event(&second.rest().await)["type"], "notice");
            assert_eq!(last_event(&retry.rest().await)["type"], "thread.item.done");
            assert_eq!(last_event(&third.rest().await)["type"], "thread.item.done");
        })
        .await;
        assert_eq!(statuses(&t).await, "succeeded cancelled succeeded succeeded");
        let ran = "SELECT count(DISTINCT run_id) FROM run_steps";
        assert_eq!(t.scalar(ran).await, "3", "no step of the removed message ran");
        assert_eq!(texts(&client, &workflow, &thread).await.len(), 4);
        until("the service to settle", async || t.load().await.threads == 0).await;
    }
}

/// Prints the model's input, after a delay.
const HISTORY: &str = "({% for m in messages %}{{ m.content }} {% endfor %})";

/// The reply to the previous message arrived while the message waited, and follows it without being its reply.
#[tokio::test]
async fn retrying_a_formerly_queued_message_keeps_the_previous_answer() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::delayed(5.0, HISTORY)).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "one").await;
    t.advance(Duration::from_millis(10));
    let mut second = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
    second.until("stream_options").await;
    let step = Duration::from_millis(100);
    t.while_time_passes_in(step, async { (first.rest().await, second.rest().await) }).await;
    let (ids, item_texts) = items(&client, &workflow, &thread).await;
    assert_eq!(item_texts, ["one", "two", "(one )", "(one (one ) two )"]);
    for _ in 0..2 {
        let retry = client.say_again(&workflow.id, &thread, &ids[1]);
        let turn = t.while_time_passes_in(step, retry).await.unwrap();
        assert_eq!(turn.text, "(one (one ) two )");
        assert_eq!(texts(&client, &workflow, &thread).await, ["one", "two", "(one )", "(one (one ) two )"]);
    }
    let more = client.say_in(&workflow.id, &thread, "three");
    t.while_time_passes_in(step, more).await.unwrap();
    let retry = client.say_again(&workflow.id, &thread, &ids[1]);
    t.while_time_passes_in(step, retry).await.unwrap();
    assert_eq!(texts(&client, &workflow, &thread).await, ["one", "two", "(one )", "(one (one ) two )"]);
    let retry = client.say_again(&workflow.id, &thread, &ids[0]);
    t.while_time_passes_in(step, retry).await.unwrap();
    assert_eq!(texts(&client, &workflow, &thread).await, ["one", "(one )"]);
}

#[tokio::test]
async fn retrying_a_queued_message_keeps_the_previous_answer() {
    for stopped in [false, true] {
        let t = TestService::with_manual_clock().await;
        let graph = two_delayed_replies("{{ messages | length }}");
        let workflow = t.workflow().graph(graph).published().create().await;
        let client = t.anonymous();
        let (mut first, thread) = running(&t, &workflow, "one").await;
        t.advance(Duration::from_millis(10));
        let mut second = t.open_chat(&chat::add(&workflow, &thread, "two")).await;
        second.until("stream_options").await;
        t.while_time_passes(first.until("content_part_added")).await;
        if stopped {
            t.stop_turn(&stream_id(&second)).await;
        }
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[1])).await;
        retry.until("stream_options").await;
        t.while_time_passes_in(Duration::from_millis(700), async {
            first.rest().await;
            second.rest().await;
            assert_eq!(last_event(&retry.rest().await)["item"]["content"][0]["text"], "3 done");
        })
        .await;
        let all = texts(&client, &workflow, &thread).await;
        assert_eq!(all, ["one", "two", "1 done", "3 done"], "stopped: {stopped}");
    }
}

/// Readers of the stream have seen them.
#[tokio::test]
async fn a_retry_streams_the_removal_of_items_when_it_starts() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(two_delayed_replies("so far")).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "one").await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let mut retry = t.open_chat(&retry_request(&workflow, &thread, &ids[0])).await;
    let mut third = t.open_chat(&chat::add(&workflow, &thread, "three")).await;
    third.until("stream_options").await;
    t.while_time_passes(first.until("so far")).await;
    t.stop_turn(&stream_id(&first)).await;
    let answer = events(&first.rest().await).pop().unwrap()["item"]["id"].clone();
    let step = Duration::from_millis(500);
    let stream_events = events(&t.while_time_passes_in(step, retry.rest()).await);
    let kinds: Vec<&str> = stream_events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(
        kinds[..3],
        ["stream_options", "thread.item.removed", "thread.item.added"],
        "hidden items are not announced"
    );
    assert_eq!(stream_events[1]["item_id"], answer);
    assert_eq!(kinds.iter().filter(|kind| **kind == "thread.item.removed").count(), 1);
    t.while_time_passes_in(step, third.rest()).await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["one", "three", "so far done", "so far done"]);
}

/// A retry removes the waiting message of another retry, and the first reply is not affected by the second.
#[tokio::test]
async fn a_queued_retry_is_removed_with_its_message() {
    for text in ["said", "{{ messages | length }}"] {
        let t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(graphs::delayed(5.0, text)).published().create().await;
        let client = t.anonymous();
        let step = Duration::from_millis(100);
        let thread = t.while_time_passes_in(step, client.say(&workflow.id, "one")).await.unwrap().thread_id;
        t.while_time_passes_in(step, client.say_in(&workflow.id, &thread, "two")).await.unwrap();
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut open = Vec::new();
        for body in [
            chat::add(&workflow, &thread, "three"),
            retry_request(&workflow, &thread, &ids[2]),
            retry_request(&workflow, &thread, &ids[0]),
            retry_request(&workflow, &thread, &ids[0]),
        ] {
            let mut answer = t.open_chat(&body).await;
            answer.until("stream_options").await;
            open.push(answer);
        }
        let mut ends = Vec::new();
        for answer in &mut open {
            let body_text = t.while_time_passes_in(step, answer.rest()).await;
            ends.push(last_event(&body_text)["type"].as_str().unwrap().to_owned());
        }
        assert_eq!(ends, ["thread.item.done", "notice", "thread.item.done", "thread.item.done"]);
        assert_eq!(statuses(&t).await, "succeeded succeeded succeeded cancelled succeeded succeeded");
        let all = texts(&client, &workflow, &thread).await;
        assert_eq!(all, ["one".to_owned(), text.replace("{{ messages | length }}", "1")]);
    }
}
