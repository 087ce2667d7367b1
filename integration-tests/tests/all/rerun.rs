//! Runs that repeat another run from a given step.

use integration_tests::{AnswerExt, JSON, TestService, graphs};
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
async fn a_rerun_starts_at_a_step_with_patched_state() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(counting()).create().await;
    let first = begin(&t, &workflow, "?wait=60", json!({"x": 1})).await;
    assert_eq!(first["output"], json!({"n": 3, "c": "2"}));
    let path = format!("/api/runs/{}/rerun", first["id"].as_str().unwrap());
    let body = json!({"from_step": 3, "patch": {"n": 10}}).to_string();
    let headers = [JSON, ("idempotency-key", "once")];
    let begun = t.send("POST", &path, &headers, body.clone()).await.expect(202).value();
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
    // From the first step, everything runs again, and a repeated run can be repeated.
    let path = format!("/api/runs/{}/rerun", begun["id"].as_str().unwrap());
    let whole = t.post(&path, r#"{"from_step": 1}"#).await.value();
    assert_eq!(becomes(&t, &whole, "succeeded").await["output"], json!({"n": 3, "c": "2"}));
    // Its events start anew.
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

/// By default a run is repeated from its first failed step, or from the first step if none failed.
#[tokio::test]
async fn a_rerun_starts_at_the_first_failed_step_by_default() {
    let t = TestService::start().await;
    let mut graph = counting();
    let check = json!({"name": "check", "type": "assert", "when": "state.n > 5", "message": "too small"});
    graph["nodes"].as_array_mut().unwrap().push(check);
    let edges = graph["edges"].as_array_mut().unwrap();
    edges.retain(|edge| edge["to"] != "END");
    edges.extend([json!({"from": "c", "to": "check"}), json!({"from": "check", "to": "END"})]);
    let workflow = t.workflow().graph(graph).create().await;
    let first = begin(&t, &workflow, "?wait=60", json!({"x": 1})).await;
    assert_eq!(first["status"], "failed");
    let nodes = async |run: &Value| -> Vec<Value> {
        let path = format!("/api/runs/{}/events", run["id"].as_str().unwrap());
        let events = integration_tests::events(&t.open("GET", &path, &[], "").await.rest().await);
        let started = events.into_iter().filter(|event| event["type"] == "step_started");
        started.map(|event| event["payload"]["node"].clone()).collect()
    };
    let rerun = async |run: &Value, body: &str| {
        let path = format!("/api/runs/{}/rerun", run["id"].as_str().unwrap());
        t.post(&path, body).await.expect(202).value()
    };
    let again = rerun(&first, "").await;
    becomes(&t, &again, "failed").await;
    assert_eq!(nodes(&again).await, ["check"]);
    let mended = rerun(&first, r#"{"patch": {"n": 9}}"#).await;
    becomes(&t, &mended, "succeeded").await;
    assert_eq!(nodes(&mended).await, ["check"]);
    let whole = rerun(&mended, "").await;
    becomes(&t, &whole, "failed").await;
    assert_eq!(nodes(&whole).await, ["a", "b", "c", "check"]);
}

/// With other inputs or another version every step is executed.
#[tokio::test]
async fn a_rerun_accepts_other_inputs_and_another_version() {
    let t = TestService::start().await;
    let say = |text: &str| {
        let node = json!({"name": "say", "type": "template", "template": text});
        let mut graph = graphs::chain(&[node], Some(json!("{{ results.say.text }}")));
        graph["inputs"] = json!({"type": "object", "required": ["name"]});
        graph
    };
    let workflow = t.workflow().graph(say("Hi {{ inputs.name }}")).create().await;
    let first = begin(&t, &workflow, "?wait=60", json!({"name": "Ada"})).await;
    let versions = workflow.path("/versions");
    for text in ["Bye {{ inputs.name }}", "No {{ inputs.name }}"] {
        assert_eq!(t.post(&versions, &json!({"graph": say(text)}).to_string()).await.status, 201);
    }
    assert_eq!(t.post(&format!("{versions}/2/live"), "{}").await.status, 200);
    let path = format!("/api/runs/{}/rerun", first["id"].as_str().unwrap());
    let rerun = async |body: Value| {
        let begun = t.post(&path, &body.to_string()).await.expect(202);
        let ended = becomes(&t, &begun.value(), "succeeded").await;
        assert_eq!(ended["origin_run_id"], first["id"]);
        (ended["version"].clone(), ended["output"].clone())
    };
    let inputs = json!({"name": "Bo"});
    assert_eq!(rerun(json!({})).await, (json!(1), json!("Hi Ada")));
    assert_eq!(rerun(json!({"inputs": inputs})).await, (json!(1), json!("Hi Bo")));
    assert_eq!(rerun(json!({"version": 3})).await, (json!(3), json!("No Ada")));
    assert_eq!(rerun(json!({"version": "live", "inputs": inputs})).await, (json!(2), json!("Bye Bo")));
    for (body, expected) in
        [(json!({"inputs": {}}), "422 run.inputs_invalid"), (json!({"version": 9}), "404 version.not_found")]
    {
        assert_eq!(t.post(&path, &body.to_string()).await.refusal(), expected, "{body}");
    }
}

#[tokio::test]
async fn an_impossible_rerun_is_rejected_with_the_reason() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(counting()).published().create().await;
    let run = begin(&t, &workflow, "?wait=60", json!({})).await;
    let path = format!("/api/runs/{}/rerun", run["id"].as_str().unwrap());
    for (body, expected) in [
        (json!({"from_step": 0}), "/from_step range"),
        (json!({"from_step": 4}), "/from_step range"),
        (json!({"from_step": "1"}), "/from_step type"),
        (json!({"from_step": 1, "patch": []}), "/patch type"),
        (json!({"from_step": 1, "patch": {"m": 1}}), "/patch/m unknown_channel"),
        (json!({"from_step": 2, "inputs": {}}), "/from_step conflict"),
        (json!({"from_step": 2, "version": "live"}), "/from_step conflict"),
        (json!({"inputs": []}), "/inputs type"),
        (json!({"version": 0}), "/version range"),
        (json!({"version": "newest"}), "/version range"),
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
