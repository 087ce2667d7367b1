//! The live version after a rollback, for each way to start a workflow.

use integration_tests::{AnswerExt, JSON, Socket, TestService, Workflow, graphs, until};
use serde_json::{Value, json};

use crate::waiting_runs::begin;

fn says(text: &str) -> Value {
    graphs::chain(&[json!({"name": "t", "type": "template", "template": text})], Some(json!(text)))
}

/// A workflow with two versions, of which the first is live again.
async fn rolled_back(t: &TestService) -> Workflow {
    let workflow = t.workflow().graph(says("one")).create().await;
    let second = json!({"graph": says("two")}).to_string();
    t.post(&workflow.path("/versions"), &second).await.expect(201);
    t.post(&workflow.path("/versions/1/live"), "{}").await.expect(200);
    workflow
}

/// The version of the first run that this trigger has started.
async fn version_started_by(t: &TestService, workflow: &Workflow, trigger: &str) -> Value {
    let path = format!("/api/runs?workflow={}&trigger={trigger}", workflow.id);
    until("the trigger has started a run", async || !t.get(&path).await.value()["data"][0].is_null()).await;
    t.get(&path).await.value()["data"][0]["version"].clone()
}

#[tokio::test]
async fn sockets_and_triggers_run_the_live_version_after_a_rollback() {
    let t = TestService::start().await;
    let workflow = rolled_back(&t).await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&json!({"type": "run_workflow"})).await;
    let received = socket.until("run_completed").await;
    assert_eq!(
        (&received[0]["payload"]["version"], &received.last().unwrap()["payload"]["output"]),
        (&json!(1), &json!("one"))
    );
    socket.close().await;
    let put = async |path: &str, config: Value| {
        t.send("PUT", &workflow.path(path), &[JSON], config.to_string()).await.expect(200);
    };
    put("/triggers/webhook/config", json!({"allow_unsigned": true})).await;
    t.send("POST", &workflow.path("/triggers/webhook"), &[], "").await.expect(202);
    assert_eq!(version_started_by(&t, &workflow, "webhook").await, 1);
    put("/triggers/cron", json!({"expression": "* * * * * *"})).await;
    assert_eq!(version_started_by(&t, &workflow, "cron").await, 1);
}

#[tokio::test]
async fn workflows_and_agents_run_the_live_version_of_another_workflow_after_a_rollback() {
    let t = TestService::start().await;
    let inner = rolled_back(&t).await;
    let tool = json!({"type": "workflow", "name": "flow", "description": "Runs.", "workflow": inner.handle});
    let nodes = [
        json!({"name": "inner", "type": "sub_workflow", "workflow": inner.handle}),
        json!({"name": "ask", "type": "agent", "model": "practice/assistant", "user": "Please call flow", "tools": [tool]}),
    ];
    let output = json!({"inner": "{{ results.inner }}", "ask": "{{ results.ask.text }}"});
    let outer = t.workflow().graph(graphs::chain(&nodes, Some(output))).create().await;
    let run = begin(&t, &outer, "?wait=60", json!({})).await;
    assert_eq!(run["output"], json!({"inner": "one", "ask": "The tool says: one"}), "{run}");
}
