//! Runs that are begun over a socket.

use integration_tests::{AnswerExt, Socket, TestService, graphs};
use serde_json::{Value, json};

use super::{ADMIN, bearer, call, guarded, token};

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
async fn a_run_is_begun_and_its_events_follow_with_what_came_with_it() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(double()).create().await;
    let mut socket = Socket::of(&t, &workflow, &[]).await;
    socket.say(&json!({"type": "run_workflow", "inputs": {"n": 4}, "request_id": "r1"})).await;
    let told = events(&mut socket).await;
    let kinds: Vec<&str> = told.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["run_started", "step_started", "step_completed", "run_completed"]);
    assert!(told.iter().enumerate().all(|(at, event)| event["seq"] == at + 1 && event["request_id"] == "r1"));
    assert_eq!(told[3]["payload"]["output"], json!({"n": 8}));
    let record = t.get(&format!("/api/runs/{}", told[0]["run_id"].as_str().unwrap())).await.value();
    assert_eq!((&record["trigger"], &record["version"]), (&json!("websocket"), &json!(1)));
    socket
        .say(
            &json!({"type": "run_workflow", "graph_config": {}, "inputs": {"n": 4}, "config": {"factor": 3}}),
        )
        .await;
    assert_eq!(events(&mut socket).await.last().unwrap()["payload"]["output"], json!({"n": 12}));
    socket.close().await;
}

#[tokio::test]
async fn a_graph_that_comes_along_is_saved_once() {
    let t = TestService::start().await;
    let workflow = t.workflow().graph(double()).create().await;
    let mut socket = Socket::of(&t, &workflow, &[]).await;
    let graph = graphs::chain(&[json!({"name": "x", "type": "template", "template": "new"})], None);
    for _ in 0..2 {
        socket.say(&json!({"type": "run_workflow", "graph_config": graph})).await;
        let told = events(&mut socket).await;
        assert_eq!(told[0]["payload"]["version"], 2);
        assert_eq!(told.last().unwrap()["payload"]["output"]["x"]["text"], "new");
    }
    // What is wrong with it is told, and the socket stays open.
    socket
        .say(&json!({"type": "run_workflow", "graph_config": {"format": "graph/2"}, "request_id": "bad"}))
        .await;
    let told = events(&mut socket).await;
    assert_eq!(
        (&told[0]["payload"]["code"], &told[0]["request_id"]),
        (&json!("graph.invalid"), &json!("bad"))
    );
    assert!(!told[0]["payload"]["errors"].as_array().unwrap().is_empty());
    socket.say(&json!({"type": "run_workflow", "graph_config": double(), "inputs": {}})).await;
    let told = events(&mut socket).await;
    assert_eq!(told[0]["payload"]["code"], "run.inputs_invalid");
    assert_eq!(t.get(&format!("/api/workflows/{}", workflow.id)).await.value()["latest_version"], 2);
    let archived = t.send("DELETE", &format!("/api/workflows/{}", workflow.id), &[], String::new()).await;
    assert_eq!(archived.status, 200);
    socket.say(&json!({"type": "run_workflow"})).await;
    assert_eq!(events(&mut socket).await[0]["payload"]["code"], "workflow.archived");
    socket.close().await;
}

#[tokio::test]
async fn a_graph_asks_for_the_right_to_write() {
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
    let told = events(&mut socket).await;
    assert_eq!(told[0]["payload"]["code"], "auth.missing_scope");
    assert_eq!(told[0]["payload"]["message"], "Missing required scopes: workflows:write");
    socket.say(&run(None)).await;
    assert_eq!(events(&mut socket).await.last().unwrap()["type"], "run_completed");
    socket.close().await;
    let mut socket = Socket::open(t.address(), &path, &[("authorization", &bearer(ADMIN))]).await;
    socket.say(&run(Some(double()))).await;
    assert_eq!(events(&mut socket).await.last().unwrap()["type"], "run_completed");
    socket.close().await;
}
