//! Joins that a choice leaves unmet: a warning when the version is saved, and a warning on the run.

use integration_tests::{AnswerExt, TestService, graphs};
use serde_json::{Value, json};

use crate::waiting_runs::{becomes, begin};

fn template(name: &str) -> Value {
    json!({"name": name, "type": "template", "template": name})
}

/// `d` waits for `b`, which runs only if `inputs.go` holds, and for `c`.
fn optional_join() -> Value {
    json!({
        "format": "graph/1",
        "nodes": (["a", "b", "c", "d"].map(template)),
        "edges": [
            {"from": "START", "to": "a"},
            {"from": "a", "cases": [{"when": "inputs.go", "to": "b"}], "else": "END"},
            {"from": "a", "to": "c"},
            {"from": ["b", "c"], "to": "d"},
            {"from": "d", "to": "END"},
        ],
        "output": {"done": true},
    })
}

fn unmet_warning(node: &str) -> Value {
    json!({"code": "run.incomplete", "message": "a join was not met: 'c' finished, 'b' did not", "node": node})
}

#[tokio::test]
async fn an_unmet_join_is_a_warning_in_the_record_the_list_and_the_last_event() {
    let t = TestService::start().await;
    let workflow = t.workflow().without_version().create().await;
    let saved = t.post(&workflow.path("/versions"), &json!({"graph": optional_join()}).to_string()).await;
    assert_eq!(saved.status, 201);
    let warning = &saved.value()["warnings"][0];
    assert_eq!((&warning["pointer"], &warning["code"]), (&json!("/edges/3/from"), &json!("may_not_be_met")));
    let checked =
        t.post("/api/workflows/check", &json!({"graph": optional_join()}).to_string()).await.value();
    assert_eq!((&checked["valid"], &checked["warnings"][0]), (&json!(true), warning));
    let met = begin(&t, &workflow, "?wait=60", json!({"go": true})).await;
    assert_eq!((&met["status"], &met["warning"]), (&json!("succeeded"), &Value::Null));
    let run = begin(&t, &workflow, "?wait=60", json!({"go": false})).await;
    assert_eq!(
        (&run["status"], &run["error"], &run["warning"]),
        (&json!("succeeded"), &Value::Null, &unmet_warning("d"))
    );
    let list = t.get(&format!("/api/runs?workflow={}", workflow.id)).await.value();
    assert_eq!((&list["data"][0]["error"], &list["data"][0]["warning"]), (&Value::Null, &unmet_warning("d")));
    let mut events =
        t.open("GET", &format!("/api/runs/{}/events", run["id"].as_str().unwrap()), &[], "").await;
    let events = integration_tests::events(&events.rest().await);
    assert_eq!(
        events.last().unwrap()["payload"],
        json!({"output": {"done": true}, "warning": unmet_warning("d")})
    );
}

#[tokio::test]
async fn a_sub_workflows_warning_is_in_the_journal_of_its_run() {
    let t = TestService::start().await;
    let inner = t.workflow().graph(optional_join()).create().await;
    let nodes = [
        json!({"name": "inner", "type": "sub_workflow", "workflow": inner.handle, "inputs": {"go": false}}),
        template("last"),
    ];
    let outer = t.workflow().graph(graphs::chain(&nodes, None)).create().await;
    let run = begin(&t, &outer, "?wait=60", json!({})).await;
    assert_eq!(run["warning"], unmet_warning("inner/d"));
    // A rerun copies the row of the sub-workflow, and does not execute it.
    let path = format!("/api/runs/{}/rerun", run["id"].as_str().unwrap());
    let again = t.post(&path, r#"{"from_step": 2}"#).await.value();
    assert_eq!(becomes(&t, &again, "succeeded").await["warning"], unmet_warning("inner/d"));
}
