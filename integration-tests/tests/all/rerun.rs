//! Runs that repeat another from a step on.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};

use crate::waiting_runs::{becomes, begin};

fn counting() -> Value {
    let node = |name: &str| json!({"name": name, "type": "template", "template": "{{ state.n }}", "state": {"n": 1}});
    let mut graph = graphs::chain(
        &[node("a"), node("b"), node("c")],
        Some(json!({"n": "{{ state.n }}", "c": "{{ results.c.text }}"})),
    );
    graph["state"] = json!({"n": {"merge": "sum"}});
    graph
}

#[tokio::test]
async fn a_run_is_repeated_from_a_step_on_with_changed_state() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(counting()).create().await;
    let first = begin(&t, &workflow, "?wait=60", json!({"x": 1})).await;
    assert_eq!(first["output"], json!({"n": 3, "c": "2"}));
    let path = format!("/api/runs/{}/rerun", first["id"].as_str().unwrap());
    let body = json!({"from_step": 3, "patch": {"n": 10}}).to_string();
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    let begun = t.send("POST", &path, &headers, body.clone()).await;
    assert_eq!(begun.status, 202, "{}", begun.text());
    let begun = begun.value();
    assert_eq!(
        (&begun["origin_run_id"], &begun["trigger"], &begun["inputs"]),
        (&first["id"], &json!("rerun"), &json!({"x": 1}))
    );
    let again = t.send("POST", &path, &headers, body).await;
    assert_eq!((&again.value()["id"], again.header("idempotency-replayed")), (&begun["id"], Some("true")));
    assert_eq!(becomes(&t, &begun, "succeeded").await["output"], json!({"n": 11, "c": "10"}));
    let trace = t.get(&format!("/api/runs/{}/trace", begun["id"].as_str().unwrap())).await.value();
    let steps: Vec<(&str, &Value)> = trace["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| (step["node"].as_str().unwrap(), &step["result"]["text"]))
        .collect();
    assert_eq!(steps, [("a", &json!("0")), ("b", &json!("1")), ("c", &json!("10"))]);
    // From the first step on everything runs again, and a repeated run can be repeated.
    let path = format!("/api/runs/{}/rerun", begun["id"].as_str().unwrap());
    let whole = t.post(&path, r#"{"from_step": 1}"#).await.value();
    assert_eq!(becomes(&t, &whole, "succeeded").await["output"], json!({"n": 3, "c": "2"}));
    // What was told of it begins anew.
    let body = t
        .open("GET", &format!("/api/runs/{}/events", begun["id"].as_str().unwrap()), &[], "")
        .await
        .rest()
        .await;
    let events = integration_tests::events(&body);
    assert_eq!(
        (&events[0]["type"], &events[0]["payload"]["resumed"]),
        (&json!("run_started"), &json!(false))
    );
    let begun_nodes: Vec<&Value> =
        events.iter().filter(|e| e["type"] == "step_started").map(|e| &e["payload"]["node"]).collect();
    assert_eq!(begun_nodes, ["c"]);
}

#[tokio::test]
async fn what_cannot_be_repeated_is_told() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(counting()).published().create().await;
    let run = begin(&t, &workflow, "?wait=60", json!({})).await;
    let path = format!("/api/runs/{}/rerun", run["id"].as_str().unwrap());
    for (body, expected) in [
        (json!({}), "/from_step required"),
        (json!({"from_step": 0}), "/from_step range"),
        (json!({"from_step": 4}), "/from_step range"),
        (json!({"from_step": "1"}), "/from_step type"),
        (json!({"from_step": 1, "patch": []}), "/patch type"),
        (json!({"from_step": 1, "patch": {"m": 1}}), "/patch/m unknown_channel"),
        (json!({"from_step": 1, "inputs": {}}), "/inputs unknown_field"),
    ] {
        let refused = t.post(&path, &body.to_string()).await;
        assert_eq!(refused.status, 422, "{body}");
        let problem = &refused.value()["detail"]["errors"][0];
        let line = format!("{} {}", problem["pointer"].as_str().unwrap(), problem["code"].as_str().unwrap());
        assert_eq!(line, expected);
    }
    let unknown = t.post("/api/runs/0198c2f4-6b1e-7c88-9d21-3f4a5b6c7d8e/rerun", r#"{"from_step": 1}"#).await;
    assert_eq!((unknown.status, unknown.code().as_str()), (404, "run.not_found"));
    t.chat(&integration_tests::chat::create(&workflow, "hi")).await;
    let turn = t.scalar("SELECT id::text FROM runs WHERE thread_id IS NOT NULL").await;
    let refused = t.post(&format!("/api/runs/{turn}/rerun"), r#"{"from_step": 1}"#).await;
    assert_eq!((refused.status, refused.code().as_str()), (409, "run.not_repeatable"));
}
