//! Runs started over a socket.

use std::time::Duration;

use integration_tests::{AnswerExt, BOOTSTRAP, Socket, TestService, graphs, until};
use serde_json::{Value, json};

use super::{bearer, call, guarded, token};

async fn events(socket: &mut Socket) -> Vec<Value> {
    let mut events = Vec::new();
    loop {
        let event = socket.next().await;
        let over = ["run_completed", "run_failed", "error"].contains(&event["type"].as_str().unwrap());
        events.push(event);
        if over {
            return events;
        }
    }
}

fn double() -> Value {
    let node = json!({"name": "double", "type": "transform", "expression": "inputs.n * (config.factor | default(2))"});
    let mut graph = graphs::chain(&[node], Some(json!({"n": "{{ results.double }}"})));
    graph["inputs"] = json!({"type": "object", "required": ["n"]});
    graph
}

#[tokio::test]
async fn a_run_is_started_and_its_events_have_the_request_id() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(double()).create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    socket.say(&json!({"type": "run_workflow", "inputs": {"n": 4}, "request_id": "r1"})).await;
    let received = events(&mut socket).await;
    let kinds: Vec<&str> = received.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run_started", "step_started", "step_completed", "run_completed"]);
    assert!(
        received.iter().enumerate().all(|(at, event)| event["seq"] == at + 1 && event["request_id"] == "r1")
    );
    assert_eq!(received[3]["payload"]["output"], json!({"n": 8}));
    let record = t.get(&format!("/api/runs/{}", received[0]["run_id"].as_str().unwrap())).await.value();
    assert_eq!((&record["trigger"], &record["version"]), (&json!("websocket"), &json!(1)));
    socket
        .say(
            &json!({"type": "run_workflow", "graph_config": {}, "inputs": {"n": 4}, "config": {"factor": 3}}),
        )
        .await;
    assert_eq!(events(&mut socket).await.last().unwrap()["payload"]["output"], json!({"n": 12}));
    socket.close().await;
}

/// A trial does not replace the version that others use.
#[tokio::test]
async fn a_graph_in_a_message_is_stored_once_as_a_draft() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(double()).create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    let graph = graphs::chain(&[json!({"name": "x", "type": "template", "template": "new"})], None);
    let mut drafts = Vec::new();
    for _ in 0..2 {
        socket.say(&json!({"type": "run_workflow", "graph_config": graph})).await;
        let received = events(&mut socket).await;
        assert_eq!(received[0]["payload"]["version"], Value::Null);
        assert_eq!(received.last().unwrap()["payload"]["output"]["x"]["text"], "new");
        let run = t.get(&format!("/api/runs/{}", received[0]["run_id"].as_str().unwrap())).await.value();
        assert_eq!(run["version"], Value::Null);
        drafts.push(run["version_id"].as_str().unwrap().to_owned());
    }
    assert_eq!(drafts[0], drafts[1]);
    // A graph that equals the latest version runs as that version.
    socket.say(&json!({"type": "run_workflow", "graph_config": double(), "inputs": {"n": 1}})).await;
    assert_eq!(events(&mut socket).await[0]["payload"]["version"], 1);
    let path = workflow.path("");
    let record = t.get(&path).await.value();
    assert_eq!((&record["latest_version"], &record["live_version"]), (&json!(1), &json!(1)));
    let listed = async |query: &str| -> Vec<Value> {
        let list = t.get(&format!("{path}/versions{query}")).await.value();
        list["data"].as_array().unwrap().iter().map(|one| one["version"].clone()).collect()
    };
    assert_eq!(listed("").await, [json!(1)]);
    assert_eq!(listed("?drafts=true").await, [Value::Null, json!(1)]);
    let draft = t.get(&format!("{path}/versions/{}", drafts[0])).await.value();
    assert_eq!((&draft["draft"], &draft["graph"]), (&json!(true), &graph));
    let diff = t.get(&format!("{path}/versions/1/diff/{}", drafts[0])).await;
    assert_eq!((diff.status, &diff.value()["target"]), (200, &Value::Null));
    assert_eq!(t.get(&format!("{path}/versions/{}/diagram.mmd", drafts[0])).await.status, 200);
    let other = t.workflow().create().await;
    let foreign = t.get(&format!("/api/workflows/{}/versions/{}", other.id, drafts[0])).await;
    assert_eq!(foreign.refusal(), "404 version.not_found");
    let live = t.post(&format!("{path}/versions/{}/live", drafts[0]), "{}").await;
    assert_eq!(live.refusal(), "404 version.not_found");
    // Saved as the next version.
    let promote = json!({"draft": drafts[0], "notes": "tried"}).to_string();
    let saved = t.post(&format!("{path}/versions"), &promote).await;
    assert_eq!(
        (saved.status, &saved.value()["version"], &saved.value()["draft"]),
        (201, &json!(2), &json!(false))
    );
    assert_eq!(t.post(&format!("{path}/versions"), &promote).await.status, 200);
    for wrong in [json!({"draft": "x"}), json!({"draft": drafts[0], "graph": graph})] {
        let refused = t.post(&format!("{path}/versions"), &wrong.to_string()).await;
        assert_eq!(refused.refusal(), "422 request.invalid", "{wrong}");
    }
    // Problems in the graph are reported, and the socket stays open.
    socket
        .say(&json!({"type": "run_workflow", "graph_config": {"format": "graph/2"}, "request_id": "bad"}))
        .await;
    let received = events(&mut socket).await;
    assert_eq!(
        (&received[0]["payload"]["code"], &received[0]["request_id"]),
        (&json!("graph.invalid"), &json!("bad"))
    );
    let pointers = received[0]["payload"]["errors"].as_array().unwrap().iter();
    assert!(pointers.clone().all(|error| error["pointer"].as_str().unwrap().starts_with("/graph_config")));
    assert!(pointers.count() > 0);
    socket.say(&json!({"type": "run_workflow", "graph_config": double(), "inputs": {}})).await;
    let received = events(&mut socket).await;
    assert_eq!(received[0]["payload"]["code"], "run.inputs_invalid");
    assert_eq!(t.get(&workflow.path("")).await.value()["latest_version"], 2);
    t.send("DELETE", &workflow.path(""), &[], String::new()).await.expect(200);
    socket.say(&json!({"type": "run_workflow"})).await;
    assert_eq!(events(&mut socket).await[0]["payload"]["code"], "workflow.archived");
    socket.close().await;
}

#[tokio::test]
async fn a_graph_requires_the_write_scope() {
    let t = guarded().start().await;
    let made = call(&t, "POST", "/api/workflows", &json!({"name": "w"})).await;
    let path = format!("/api/workflows/{}/versions", made["id"].as_str().unwrap());
    call(&t, "POST", &path, &json!({"graph": double()})).await;
    let (_, runner) = token(&t, json!({"scopes": ["workflows:execute"]})).await;
    let path = format!("/ws/workflow/{}", made["id"].as_str().unwrap());
    let run = |graph: Option<Value>| {
        let mut message = json!({"type": "run_workflow", "inputs": {"n": 1}});
        if let Some(graph) = graph {
            message["graph_config"] = graph;
        }
        message
    };
    let mut socket = Socket::open(t.address(), &path, &[("authorization", &bearer(&runner))]).await;
    socket.say(&run(Some(double()))).await;
    let received = events(&mut socket).await;
    assert_eq!(received[0]["payload"]["code"], "auth.missing_scope");
    assert_eq!(received[0]["payload"]["message"], "Missing required scopes: workflows:write");
    socket.say(&run(None)).await;
    assert_eq!(events(&mut socket).await.last().unwrap()["type"], "run_completed");
    socket.close().await;
    let mut socket = Socket::open(t.address(), &path, &[("authorization", &bearer(BOOTSTRAP))]).await;
    socket.say(&run(Some(double()))).await;
    assert_eq!(events(&mut socket).await.last().unwrap()["type"], "run_completed");
    socket.close().await;
}

/// A draft that no run needs is deleted after a day; one that a run needs stays as long as the run.
#[tokio::test]
async fn unused_drafts_are_deleted() {
    let t = TestService::with_manual_clock().await;
    let workflow = t.workflow().graph(double()).create().await;
    let mut socket = Socket::for_workflow(&t, &workflow, &[]).await;
    for template in ["kept", "forgotten"] {
        let graph = graphs::chain(&[json!({"name": "x", "type": "template", "template": template})], None);
        socket.say(&json!({"type": "run_workflow", "graph_config": graph})).await;
        assert_eq!(events(&mut socket).await.last().unwrap()["type"], "run_completed");
    }
    socket.close().await;
    t.execute("DELETE FROM runs WHERE output LIKE '%forgotten%'").await;
    let drafts = "SELECT string_agg(graph::text, ' ') FROM workflow_versions WHERE draft";
    assert!(t.scalar(drafts).await.contains("forgotten"));
    t.while_time_passes_in(Duration::from_secs(3_600), async {
        until("the draft to go", async || !t.scalar(drafts).await.contains("forgotten")).await;
    })
    .await;
    assert!(t.scalar(drafts).await.contains("kept"));
    assert_eq!(t.scalar("SELECT count(*) FROM workflow_versions WHERE NOT draft").await, "1");
}
