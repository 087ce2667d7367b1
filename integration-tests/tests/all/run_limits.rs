//! Workflow limits on concurrent runs.

use integration_tests::{AnswerExt, Endpoint, TestService, Workflow, graphs, until};
use serde_json::{Value, json};

use crate::waiting_runs::{answer, becomes, begin, record};

async fn limited(t: &TestService, graph: Value, most: Value) -> Workflow {
    let workflow = t.workflow().graph(graph).create().await;
    let changed = t.configure(&workflow, &json!({"max_concurrent_runs": most})).await;
    assert_eq!((changed.status, &changed.value()["max_concurrent_runs"]), (200, &most), "{}", changed.text());
    workflow
}

#[tokio::test]
async fn concurrent_runs_stay_within_the_limit_and_all_end() {
    let t = TestService::with_manual_clock().await;
    let workflow =
        limited(&t, graphs::chain(&[json!({"name": "d", "type": "delay", "seconds": 1})], None), json!(2))
            .await;
    let mut runs = Vec::new();
    for _ in 0..12 {
        runs.push(begin(&t, &workflow, "", json!({})).await);
    }
    assert_eq!(runs[11]["status"], "queued");
    t.while_time_passes(async {
        for run in &runs {
            becomes(&t, run, "succeeded").await;
        }
    })
    .await;
    // By the times in their rows, at most two overlapped.
    let overlaps = "SELECT coalesce(max(n), 0)::text FROM (SELECT count(*) AS n FROM runs a JOIN runs b
                    ON b.started_at <= a.started_at AND b.finished_at > a.started_at GROUP BY a.id) t";
    assert_eq!(t.scalar(overlaps).await, "2");
    t.until_scalar("the slots are released", "SELECT count(*)::text FROM run_places", "0").await;
    // In the order of their requests, except for the two that run concurrently.
    let out_of_order = "SELECT count(*)::text FROM (SELECT started_at, lag(started_at, 2) OVER (ORDER BY id) AS before FROM runs) t
                        WHERE started_at < before";
    assert_eq!(t.scalar(out_of_order).await, "0");
}

#[tokio::test]
async fn a_waiting_run_frees_its_slot() {
    let t = TestService::start().await;
    let wait = json!({"name": "ok", "type": "wait_for_input"});
    let workflow = limited(&t, graphs::chain(&[wait], None), json!(1)).await;
    let (first, second) =
        (begin(&t, &workflow, "", json!({})).await, begin(&t, &workflow, "", json!({})).await);
    becomes(&t, &first, "waiting").await;
    becomes(&t, &second, "waiting").await;
    for run in [&second, &first] {
        assert_eq!(answer(&t, run, "ok", json!(1)).await.status, 202);
        becomes(&t, run, "succeeded").await;
    }
}

#[tokio::test]
async fn queued_runs_are_cancelled_and_outlive_a_restart() {
    let endpoint = Endpoint::holding().await;
    let mut t = endpoint.service().await;
    let ask = json!({"name": "ask", "type": "llm", "model": "openai/test", "user": "why"});
    let workflow = limited(&t, graphs::chain(&[ask], None), json!(1)).await;
    let first = begin(&t, &workflow, "", json!({})).await;
    becomes(&t, &first, "running").await;
    let (second, third) =
        (begin(&t, &workflow, "", json!({})).await, begin(&t, &workflow, "", json!({})).await);
    let cancel = |run: &Value| format!("/api/runs/{}/cancel", run["id"].as_str().unwrap());
    assert_eq!(t.post(&cancel(&second), "").await.value()["status"], "cancelled");
    assert_eq!(record(&t, &third).await["status"], "queued");
    t.restart().await;
    assert_eq!(record(&t, &third).await["status"], "queued", "the first run continues and keeps its slot");
    assert_eq!(t.post(&cancel(&first), "").await.value()["status"], "cancelled");
    becomes(&t, &third, "running").await;
    t.post(&cancel(&third), "").await;
    t.until_scalar("the slots are released", "SELECT count(*)::text FROM run_places", "0").await;
}

#[tokio::test]
async fn the_limit_is_validated_and_can_be_removed() {
    let t = TestService::start().await;
    let workflow =
        limited(&t, graphs::chain(&[json!({"name": "d", "type": "delay", "seconds": 60})], None), json!(1))
            .await;
    let runs = [begin(&t, &workflow, "", json!({})).await, begin(&t, &workflow, "", json!({})).await];
    for wrong in [json!(0), json!(-1), json!(1.5), json!("2"), json!(10_001)] {
        let refused = t.configure(&workflow, &json!({"max_concurrent_runs": wrong})).await;
        assert_eq!(refused.status, 422, "{wrong}");
        assert_eq!(refused.value()["detail"]["errors"][0]["pointer"], "/max_concurrent_runs");
    }
    let changed = t.configure(&workflow, &json!({"max_concurrent_runs": null})).await;
    assert_eq!(changed.value()["max_concurrent_runs"], Value::Null);
    for run in &runs {
        becomes(&t, run, "waiting").await;
        t.post(&format!("/api/runs/{}/cancel", run["id"].as_str().unwrap()), "").await;
    }
}

/// Limits of single nodes multiply; a run's limits do not.
#[tokio::test]
async fn a_recursive_workflow_ends_and_does_not_starve_others() {
    let t = TestService::start().await;
    let workflow = t.workflow().create().await;
    let again = json!({"type": "sub_workflow", "workflow": workflow.handle});
    let items = json!({"name": "all", "type": "for_each", "items": [1, 2, 3], "concurrency": 3, "body": again,
                       "on_item_error": "continue"});
    let graph = graphs::chain(&[items], None);
    t.post(&workflow.path("/versions"), &json!({"graph": graph}).to_string()).await.expect(201);
    let begun = t.post(&workflow.path("/runs"), r#"{"inputs":{"message":"x"}}"#).await.value();
    let chatting = t.workflow().echo().published().create().await;
    assert!(t.visitor().say(&chatting.id, "meanwhile").await.unwrap().text.contains("meanwhile"));
    let path = format!("/api/runs/{}", begun["id"].as_str().unwrap());
    until("the run to end", async || t.get(&path).await.value()["status"] == "failed").await;
    // It continues with an entry that fails, and still the whole run ends.
    let error = t.get(&path).await.value()["error"].clone();
    assert_eq!(error["code"], "run.nodes_limit", "{error}");
    let rows: u32 = t.scalar("SELECT count(*) FROM run_steps").await.parse().unwrap();
    assert!(rows < 5_000, "{rows}");
}
