//! Questions that end without an answer, and other waits in turns that have ended with a question.

use std::time::Duration;

use integration_tests::{AnswerExt, TestService, chat, events, graphs, until};
use serde_json::{Value, json};

use crate::questions::{PendingQuestion, SUCCEEDED, both, desk, run_at, yes};
use crate::waiting_runs::answer;

fn expiring(on_error: Value) -> Value {
    let mut ask = json!({"name": "confirm", "type": "ask", "expires_seconds": 5,
        "inputs": [{"id": "q", "type": "freeform", "question": "Well?"}]});
    let mut text = "After.";
    if !on_error.is_null() {
        ask["on_error"] = on_error;
        text = "After: {{ results.confirm.error.code if results.confirm.error is defined else results.confirm.status }}";
    }
    graphs::chain(&[ask, json!({"name": "say", "type": "reply", "text": text})], None)
}

#[tokio::test]
async fn a_later_answer_continues_an_ended_turn() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, both(json!({"name": "right", "type": "wait_for_input"}))).await;
    let run = run_at(&t, 0).await;
    assert_eq!(run["waits_for"].as_array().unwrap().len(), 2, "{run:#}");
    assert_eq!(answer(&t, &run, "right", json!(5)).await.status, 202);
    t.until_scalar("the turn has continued", SUCCEEDED, "2").await;
    // The id of the first run now refers to the run that continues it.
    let body = json!({"answers": {"q": {"values": ["here"]}}});
    assert_eq!(answer(&t, &run, "left", json!("no object")).await.refusal(), "422 run.input_invalid");
    assert_eq!(answer(&t, &run, "left", body.clone()).await.status, 202);
    until("the rest", async || question.shown(&t).await.iter().any(|text| text.contains("Left: here.")))
        .await;
    assert_eq!(answer(&t, &run, "left", body).await.refusal(), "409 run.not_waiting");
    assert_eq!(question.shown(&t).await[1], "structured_input answered");
    assert_eq!(t.chat(&question.submission(yes())).await.refusal(), "409 item.not_pending");
}

#[tokio::test]
async fn a_finished_delay_continues_a_turn() {
    let t = TestService::with_manual_clock().await;
    let question =
        PendingQuestion::start_timed(&t, both(json!({"name": "right", "type": "delay", "seconds": 3600})))
            .await;
    t.advance(Duration::from_secs(3_601));
    t.while_time_passes(until("the turn has continued", async || t.scalar(SUCCEEDED).await == "2")).await;
    assert_eq!(question.shown(&t).await[1], "structured_input pending");
    let input = json!({"answers": {"q": {"values": ["late"]}}});
    let answered = t.while_time_passes(t.chat(&question.submission(input))).await;
    assert!(answered.text().contains("Left: late."), "{}", answered.text());
}

#[tokio::test]
async fn a_parked_continuation_does_not_block_other_turns_of_its_thread() {
    let mut t = TestService::with_manual_clock().await;
    t.leave_work();
    let ask = |name: &str| json!({"name": name, "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "?"}]});
    let short = json!({"name": "short", "type": "delay", "seconds": 3_600});
    let long = json!({"name": "long", "type": "delay", "seconds": 900_000});
    let first = json!({"when": "inputs.message == 'order 7'", "to": "left"});
    let also = json!({"when": "inputs.message == 'order 7'", "to": "short"});
    let graph = json!({"format": "graph/1", "nodes": [ask("left"), short, ask("later"), long,
          {"name": "said", "type": "reply", "text": "The delay is over."}],
      "edges": [{"from": "START", "cases": [first], "else": "later"}, {"from": "START", "cases": [also], "else": "END"},
        {"from": "later", "to": "long"}, {"from": "long", "to": "END"}, {"from": "left", "to": "END"},
        {"from": "short", "to": "said"}, {"from": "said", "to": "END"}]});
    let question = PendingQuestion::start_timed(&t, graph).await;
    let other =
        t.while_time_passes(t.chat(&chat::add(&question.workflow, &question.thread, "another"))).await;
    let item = events(&other.text()).last().unwrap()["item"]["id"].clone();
    let input = json!({"answers": {"q": {"values": ["x"]}}});
    let params = json!({"thread_id": question.thread, "item_id": item, "input": input});
    let submission = chat::ask(&question.workflow, "threads.add_structured_input", params);
    let continued = t.while_time_passes(t.open_chat(&submission)).await;
    let waits = "SELECT count(*) FROM runs WHERE status = 'waiting'";
    t.while_time_passes(until("the other turn waits", async || t.scalar(waits).await == "1")).await;
    drop(continued);
    t.advance(Duration::from_secs(3_601));
    t.while_time_passes(until("the delay is over", async || t.scalar(SUCCEEDED).await == "3")).await;
    assert_eq!(t.scalar(waits).await, "1");
    let left = question.submission(json!({"answers": {"q": {"values": ["x"]}}}));
    let answered = t.while_time_passes(t.chat(&left)).await;
    assert!(answered.text().contains("The delay is over."), "{}", answered.text());
}

#[tokio::test]
async fn an_expired_question_is_skipped_and_may_continue_its_turn() {
    let t = TestService::with_manual_clock().await;
    let quiet = PendingQuestion::start_timed(&t, expiring(json!(null))).await;
    let continuing = PendingQuestion::start_timed(&t, expiring(json!("continue"))).await;
    // The turn ends with the question, however soon it expires.
    t.advance(Duration::from_secs(6));
    t.while_time_passes(until("both are skipped", async || {
        quiet.shown(&t).await[1] == "structured_input skipped" && continuing.shown(&t).await.len() == 3
    }))
    .await;
    assert_eq!(continuing.shown(&t).await[1..], ["structured_input skipped", "After: node.input_expired"]);
    assert_eq!(quiet.shown(&t).await.len(), 2);
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "3");
    for question in [&quiet, &continuing] {
        assert_eq!(t.chat(&question.submission(json!({}))).await.refusal(), "409 item.not_pending");
    }
}

#[tokio::test]
async fn the_outer_node_handles_an_expired_inner_question() {
    let t = TestService::with_manual_clock().await;
    let ask = json!({"type": "ask", "expires_seconds": 5,
        "inputs": [{"id": "q", "type": "freeform", "question": "Well?"}]});
    let named = |node: &Value| {
        let mut node = node.clone();
        node["name"] = json!("confirm");
        node
    };
    let inner = t.workflow().graph(graphs::chain(&[named(&ask)], None)).create().await;
    let workflow = json!({"type": "sub_workflow", "workflow": inner.id});
    let each = json!({"type": "for_each", "items": [1], "body": ask});
    let with = |node: &Value, field: &str| {
        let mut node = named(node);
        node[field] = json!("continue");
        let say = json!({"name": "say", "type": "reply", "text": "After."});
        graphs::chain(&[node, say], None)
    };
    let quiet = [
        PendingQuestion::start_timed(&t, graphs::chain(&[named(&workflow)], None)).await,
        PendingQuestion::start_timed(&t, graphs::chain(&[named(&each)], None)).await,
    ];
    let continued = [
        PendingQuestion::start_timed(&t, with(&workflow, "on_error")).await,
        PendingQuestion::start_timed(&t, with(&each, "on_error")).await,
        PendingQuestion::start_timed(&t, with(&each, "on_item_error")).await,
    ];
    t.advance(Duration::from_secs(6));
    for question in &continued {
        t.while_time_passes(until("the turn has continued", async || question.shown(&t).await.len() == 3))
            .await;
        assert_eq!(question.shown(&t).await[1..], ["structured_input skipped", "After."]);
    }
    for question in &quiet {
        t.while_time_passes(until("the question is skipped", async || {
            question.shown(&t).await[1] == "structured_input skipped"
        }))
        .await;
    }
    // One run per turn, and one more for each that continued.
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "8");
}

#[tokio::test]
async fn a_timely_answer_counts_even_if_the_turn_continues_after_the_deadline() {
    let t = TestService::with_manual_clock().await;
    let question = PendingQuestion::start_timed(&t, expiring(json!("continue"))).await;
    let held = t.hold("LOCK TABLE run_queue IN ACCESS EXCLUSIVE MODE").await;
    let input = json!({"answers": {"q": {"values": ["in time"]}}});
    let (body, sent) = (question.submission(input), std::sync::atomic::AtomicBool::new(false));
    let (answered, ()) = futures_util::join!(t.while_time_passes(t.chat(&body)), async {
        t.waiting_for_locks(1).await;
        sent.store(true, std::sync::atomic::Ordering::Relaxed);
        t.advance(Duration::from_secs(20));
        drop(held);
    });
    assert!(answered.status == 200 && answered.text().contains("After: "), "{}", answered.text());
    assert!(!answered.text().contains("input_expired"), "{}", answered.text());
}

#[tokio::test]
async fn a_retry_removes_the_question_and_its_expiry_continues_nothing() {
    let t = TestService::with_manual_clock().await;
    let question = PendingQuestion::start_timed(&t, expiring(json!("continue"))).await;
    let message = question.items(&t).await[0]["id"].clone();
    let retry = chat::ask(
        &question.workflow,
        "threads.retry_after_item",
        json!({"thread_id": question.thread, "item_id": message}),
    );
    t.while_time_passes(t.chat(&retry)).await.expect(200);
    assert_eq!(t.chat(&question.submission(json!({}))).await.refusal(), "404 item.not_found");
    let first = t.scalar("SELECT id FROM runs ORDER BY id LIMIT 1").await;
    assert_eq!(t.get(&format!("/api/runs/{first}")).await.value()["waits_for"], json!([]));
    let listed = t.get("/api/runs").await.value();
    let waits: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|run| &run["waits"]).collect();
    assert_eq!(waits, [&json!(true), &json!(false)], "{listed}");
    t.advance(Duration::from_secs(7));
    t.while_time_passes(until("the new question is skipped", async || question.shown(&t).await.len() == 3))
        .await;
    let shown = question.shown(&t).await;
    assert_eq!(shown[1..], ["structured_input skipped", "After: node.input_expired"], "{shown:?}");
    assert_eq!(t.scalar("SELECT count(*) FROM thread_items WHERE content LIKE '%After: %'").await, "1");
}

#[tokio::test]
async fn a_failed_continuation_leaves_no_question_open() {
    let t = TestService::start().await;
    let ask = json!({"name": "inner", "type": "ask", "inputs": [{"id": "q", "type": "freeform", "question": "inner?"}]});
    let no = json!({"name": "no", "type": "assert", "when": "false", "message": "no"});
    let inner = t.workflow().graph(graphs::chain(&[ask, no], None)).create().await;
    let pending = PendingQuestion::start(
        &t,
        both(json!({"name": "right", "type": "sub_workflow", "workflow": inner.id})),
    )
    .await;
    let items = pending.items(&t).await;
    let place =
        |question: &str| (1..3).find(|place| items[*place]["inputs"][0]["question"] == question).unwrap();
    let (left, inner) = (place("left?"), place("inner?"));
    let submit = |place: usize| {
        let params = json!({"thread_id": pending.thread, "item_id": items[place]["id"], "input": {}});
        chat::ask(&pending.workflow, "threads.add_structured_input", params)
    };
    let failed = t.chat(&submit(inner)).await;
    assert_eq!(events(&failed.text()).last().unwrap()["type"], "error", "{}", failed.text());
    until("the other is skipped", async || pending.shown(&t).await[left] == "structured_input skipped").await;
    assert_eq!(t.chat(&submit(left)).await.refusal(), "409 item.not_pending");
}

#[tokio::test]
async fn questions_of_a_deleted_thread_cannot_be_answered() {
    let t = TestService::start().await;
    let question = PendingQuestion::start(&t, desk()).await;
    let deleted =
        t.chat(&chat::ask(&question.workflow, "threads.delete", json!({"thread_id": question.thread}))).await;
    assert_eq!(deleted.status, 200);
    assert_eq!(t.chat(&question.submission(yes())).await.refusal(), "404 thread.not_found");
    let run = run_at(&t, 0).await;
    assert_eq!(answer(&t, &run, "confirm", yes()).await.refusal(), "409 run.not_waiting");
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, "1");
}

#[tokio::test]
async fn a_turn_that_waits_for_an_answer_outlives_the_retention_of_runs() {
    let t = TestService::builder().manual_clock().set("SERVICE_RUN_RETENTION_DAYS", "3").start().await;
    let question = PendingQuestion::start_timed(&t, desk()).await;
    let other = t.workflow().echo().published().create().await;
    t.while_time_passes(t.chat(&chat::create(&other, "hello"))).await;
    t.advance(Duration::from_secs(5 * 86_400));
    let echoes = format!("SELECT count(*) FROM runs WHERE workflow_id = '{}'", other.id);
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("old runs are deleted", async || t.scalar(&echoes).await == "0"),
    )
    .await;
    let answered = t.while_time_passes(t.chat(&question.submission(yes()))).await;
    assert!(answered.text().contains("Refunded: broken."), "{}", answered.text());
}

#[tokio::test]
async fn a_question_removed_by_a_retry_does_not_retain_its_run() {
    let t = TestService::builder().manual_clock().set("SERVICE_RUN_RETENTION_DAYS", "3").start().await;
    let question = PendingQuestion::start_timed(&t, desk()).await;
    let params = json!({"thread_id": question.thread, "item_id": question.items(&t).await[0]["id"]});
    let retry = chat::ask(&question.workflow, "threads.retry_after_item", params);
    assert_eq!(t.while_time_passes(t.chat(&retry)).await.status, 200);
    t.advance(Duration::from_secs(5 * 86_400));
    let runs = "SELECT count(*) FROM runs";
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("the first run is deleted", async || t.scalar(runs).await == "1"),
    )
    .await;
    let items = question.items(&t).await;
    let item = items.iter().rfind(|item| item["type"] == "structured_input").unwrap();
    let params = json!({"thread_id": question.thread, "item_id": item["id"], "input": yes()});
    let answered = chat::ask(&question.workflow, "threads.add_structured_input", params);
    let answered = t.while_time_passes(t.chat(&answered)).await;
    assert!(answered.text().contains("Refunded: broken."), "{}", answered.text());
}
