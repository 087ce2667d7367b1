//! Retention of a workflow's chat content.

use std::time::Duration;

use integration_tests::{Answer, AnswerExt, TestService, Workflow, chat, graphs, until};
use serde_json::{Value, json};

use crate::visitors::{CANARY, Visitor, found_in, leave_everything, published};

async fn keep_for(t: &TestService, workflow: &Workflow, days: Value) -> Answer {
    t.configure(workflow, &json!({"chat": {"retention_days": days}})).await
}

#[tokio::test]
async fn threads_are_kept_for_the_configured_days_after_their_last_item() {
    let t = TestService::with_manual_clock().await;
    let workflow = published(&t).await;
    let forever = published(&t).await;
    assert_eq!(keep_for(&t, &workflow, json!(3)).await.status, 200);
    let old = Visitor::start(&t, &workflow, CANARY).await;
    let used = Visitor::start(&t, &workflow, "used").await;
    let retained = Visitor::start(&t, &forever, "kept").await;
    t.advance(Duration::from_secs(2 * 86_400));
    let more = json!({"thread_id": used.thread, "input": chat::input("more")});
    assert_eq!(used.ask("threads.add_user_message", more).await.status, 200);
    t.advance(Duration::from_secs(86_400 + 7_200));
    let step = Duration::from_secs(600);
    let deleted = until("the thread to be deleted", async || {
        let id = old.thread.strip_prefix("thr_").unwrap();
        t.scalar(&format!("SELECT deleted_at IS NOT NULL FROM threads WHERE id = '{id}'")).await == "true"
    });
    t.while_time_passes_in(step, deleted).await;
    assert_eq!((used.items().await.len(), retained.items().await.len()), (4, 2));
    t.advance(Duration::from_secs(86_400));
    t.while_time_passes_in(
        step,
        until("the content to be erased", async || found_in(&t, CANARY).await.is_empty()),
    )
    .await;
    for (days, problem) in
        [(json!(-1), "range"), (json!(3_651), "range"), (json!("3"), "type"), (json!(1.5), "type")]
    {
        let refused = keep_for(&t, &workflow, days.clone()).await;
        assert_eq!(refused.problems(), [format!("/chat/retention_days {problem}")], "{days}");
    }
    assert_eq!(keep_for(&t, &workflow, json!(null)).await.value()["chat"]["retention_days"], json!(null));
}

#[tokio::test]
async fn a_workflow_without_retention_deletes_content_an_hour_after_use() {
    let t = TestService::with_manual_clock().await;
    let workflow = published(&t).await;
    assert_eq!(keep_for(&t, &workflow, json!(0)).await.value()["chat"]["retention_days"], 0);
    let visitor = Visitor::start(&t, &workflow, CANARY).await;
    leave_everything(&visitor).await;
    let comments = "SELECT count(*) FROM item_feedback WHERE comment IS NOT NULL OR kind <> 'negative'";
    assert_eq!(t.scalar(comments).await, "0", "only the kind is stored");
    assert_eq!(t.scalar("SELECT count(*) FROM feedback_turns").await, "0");
    assert!(visitor.items().await.len() > 4, "the content is readable while it is used");
    let runs = t.scalar("SELECT count(*) FROM runs").await;
    // Files without a message and bytes without a use are kept for a day.
    t.advance(Duration::from_secs(2 * 3_600));
    let later = ["blobs", "blob_chunks"];
    let used = async || found_in(&t, CANARY).await.iter().all(|table| later.contains(&table.as_str()));
    t.while_time_passes_in(Duration::from_secs(600), until("no content is left", used)).await;
    assert_eq!(t.scalar("SELECT count(*) FROM runs").await, runs, "times, status and version stay");
    let run = t.scalar("SELECT id FROM runs ORDER BY id LIMIT 1").await;
    let shown = t.get(&format!("/api/runs/{run}")).await.value();
    assert_eq!(
        (&shown["status"], &shown["inputs"], &shown["output"]),
        (&json!("succeeded"), &json!({}), &json!(null))
    );
    let feedback = t.get(&workflow.path("/feedback")).await.value();
    assert_eq!(
        (&feedback["data"][0]["kind"], &feedback["data"][0]["comment"]),
        (&json!("negative"), &json!(null))
    );
    t.advance(Duration::from_secs(2 * 86_400));
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("nothing is left", async || found_in(&t, CANARY).await.is_empty()),
    )
    .await;
}

#[tokio::test]
async fn a_run_with_erased_content_keeps_its_usage() {
    let t = TestService::with_manual_clock().await;
    let ask =
        json!({"name": "said", "type": "llm", "model": "practice/assistant", "user": "{{ inputs.message }}"});
    let say = json!({"name": "say", "type": "reply", "text": "{{ results.said.text }}"});
    let workflow = t.workflow().graph(graphs::chain(&[ask, say], None)).published().create().await;
    assert_eq!(keep_for(&t, &workflow, json!(0)).await.status, 200);
    let thread = t.while_time_passes(t.visitor().say(&workflow.id, "hello")).await.unwrap().thread_id;
    let run = t.scalar("SELECT id FROM runs").await;
    let usage = async || t.get(&format!("/api/runs/{run}/trace")).await.value()["usage"].clone();
    let used = usage().await;
    assert!(used["calls"] == 1 && used["output_tokens"].as_u64() > Some(0), "{used}");
    t.advance(Duration::from_secs(2 * 3_600));
    let erased = "SELECT count(*) FROM run_steps";
    t.while_time_passes_in(
        Duration::from_secs(600),
        until("the content to be erased", async || t.scalar(erased).await == "0"),
    )
    .await;
    assert_eq!(usage().await, used, "{thread}");
}

#[tokio::test]
async fn a_failed_run_with_erased_content_keeps_its_error_code() {
    let t = TestService::with_manual_clock().await;
    let fail = json!({"name": "check", "type": "assert", "when": "false", "message": "\"code\":\"no\" {{ inputs.message }}"});
    let workflow = t.workflow().graph(graphs::chain(&[fail], None)).published().create().await;
    assert_eq!(keep_for(&t, &workflow, json!(0)).await.status, 200);
    t.while_time_passes(t.chat(&chat::create(&workflow, "canary\0"))).await.expect(200);
    t.advance(Duration::from_secs(2 * 3_600));
    let erased = async || t.scalar("SELECT count(*) FROM thread_items").await == "0";
    t.while_time_passes_in(Duration::from_secs(600), until("the content to be erased", erased)).await;
    let run = t.scalar("SELECT id FROM runs").await;
    let error = t.get(&format!("/api/runs/{run}")).await.value()["error"].clone();
    assert_eq!(
        (&error["code"], &error["message"], &error["node"]),
        (&json!("node.failed"), &json!("node.failed"), &json!("check")),
        "{error}"
    );
}
