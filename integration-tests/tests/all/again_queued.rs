//! Retries and messages that wait for their turn while others are stopped, taken out or deleted.

use std::time::Duration;

use integration_tests::{AnswerExt, RawAnswer, TestService, chat, events, graphs, until};
use serde_json::{Value, json};

use crate::again::{again, items, running, texts};

/// Waits, says something, waits, says more.
fn late(text: &str) -> Value {
    let wait = |name: &str, seconds: f64| json!({"name": name, "type": "delay", "seconds": seconds});
    let say = |name: &str, text: &str| json!({"name": name, "type": "reply", "text": text});
    graphs::chain(&[wait("before", 5.0), say("first", text), wait("between", 60.0), say("second", " done")], None)
}

fn stream_of(answer: &RawAnswer) -> String {
    answer.header("x-chat-stream-id").unwrap().to_owned()
}

fn last(body: &str) -> Value {
    events(body).pop().unwrap()
}

async fn statuses(t: &TestService) -> String {
    t.scalar("SELECT string_agg(status, ' ' ORDER BY id) FROM runs").await
}

/// It takes out what stood there when it was asked for, and nothing of what came after.
#[tokio::test]
async fn a_retry_that_is_stopped_while_it_waits_takes_nothing_more_out() {
    for restarted in [false, true] {
        let mut t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(late("so far")).published().create().await;
        let client = t.anonymous();
        let (mut first, thread) = running(&t, &workflow, "hi").await;
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut retry = t.open_chat(&again(&workflow, &thread, &ids[0])).await;
        retry.until("stream_options").await;
        t.while_time_passes(first.until("so far")).await;
        let step = Duration::from_secs(1);
        if restarted {
            // Asked for, and the process ends before anybody is told.
            t.execute("UPDATE runs SET cancel_requested_at = now() WHERE status = 'queued'").await;
            t.restart().await;
            first = t.resume(&stream_of(&first), None).await;
            retry = t.resume(&stream_of(&retry), None).await;
            assert_eq!(last(&t.while_time_passes_in(step, first.rest()).await)["type"], "thread.item.done");
        } else {
            let stopped = t.stop_turn(&stream_of(&retry)).await;
            assert_eq!(stopped.value(), json!({"status": "stopped"}));
            assert_eq!(last(&t.while_time_passes_in(step, first.rest()).await)["type"], "thread.item.done");
        }
        assert_eq!(last(&t.while_time_passes_in(step, retry.rest()).await)["type"], "notice");
        assert_eq!(statuses(&t).await, "succeeded cancelled");
        assert_eq!(texts(&client, &workflow, &thread).await, ["hi", "so far done"], "restarted: {restarted}");
        let second = t.visitor();
        let answered = second.say_in(&workflow.id, &thread, "more");
        let turn = t.while_time_passes_in(step, answered).await.unwrap();
        assert_eq!(turn.text, "so far done");
    }
}

/// Once the answer is there that was being written when the retry was asked for, it stands behind the message.
#[tokio::test]
async fn a_stopped_retry_has_taken_out_what_stood_there_when_it_was_asked_for() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(graphs::interrupted("so far", 60.0, " done")).published().create().await;
    let client = t.anonymous();
    let (mut first, thread) = running(&t, &workflow, "hi").await;
    first.until("so far").await;
    let (ids, _) = items(&client, &workflow, &thread).await;
    let mut retry = t.open_chat(&again(&workflow, &thread, &ids[0])).await;
    t.stop_turn(&stream_of(&retry)).await;
    assert_eq!(last(&retry.rest().await)["type"], "notice");
    t.while_time_passes_in(Duration::from_secs(1), first.rest()).await;
    assert_eq!(texts(&client, &workflow, &thread).await, ["hi"]);
}

/// Its side effects would be for nothing, and a model would be asked with a history that ends elsewhere.
#[tokio::test]
async fn a_message_that_a_retry_has_taken_out_is_not_answered() {
    for (restarted, text) in [(false, "said"), (false, "{{ messages | length }}"), (true, "said")] {
        let mut t = TestService::with_manual_clock().await;
        let workflow = t.workflow().graph(graphs::delayed(5.0, text)).published().create().await;
        let client = t.anonymous();
        let (mut first, thread) = running(&t, &workflow, "first").await;
        let mut second = t.open_chat(&chat::add(&workflow, &thread, "second")).await;
        second.until("stream_options").await;
        let (ids, _) = items(&client, &workflow, &thread).await;
        let mut retry = t.open_chat(&again(&workflow, &thread, &ids[0])).await;
        retry.until("stream_options").await;
        let mut third = t.open_chat(&chat::add(&workflow, &thread, "third")).await;
        third.until("stream_options").await;
        if restarted {
            t.restart().await;
            for answer in [&mut first, &mut second, &mut retry, &mut third] {
                *answer = t.resume(&stream_of(answer), None).await;
            }
        }
        t.while_time_passes_in(Duration::from_millis(100), async {
            assert_eq!(last(&first.rest().await)["type"], "thread.item.done");
            assert_eq!(last(&second.rest().await)["type"], "notice");
            assert_eq!(last(&retry.rest().await)["type"], "thread.item.done");
            assert_eq!(last(&third.rest().await)["type"], "thread.item.done");
        })
        .await;
        assert_eq!(statuses(&t).await, "succeeded cancelled succeeded succeeded");
        let ran = "SELECT count(DISTINCT run_id) FROM run_steps";
        assert_eq!(t.scalar(ran).await, "3", "nothing of it ran");
        assert_eq!(texts(&client, &workflow, &thread).await.len(), 4);
        until("the service to settle", async || t.load().await.threads == 0).await;
    }
}
