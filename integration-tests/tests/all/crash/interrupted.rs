//! The trace of a run with an attempt that a kill interrupted.

use client::{Client, RunOptions};
use integration_tests::{WorkflowBuilder, until};
use serde_json::json;
use store::testing::TestDatabase;
use wire::CreateRun;

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, runs};

#[tokio::test]
async fn an_attempt_interrupted_by_a_kill_is_in_the_trace() {
    let database = TestDatabase::create().await;
    let folder = folder("interrupted");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    // One attempt whose start is stored, and one whose start is only in the events.
    let nodes = [
        json!({"name": "first", "type": "template", "template": "1"}),
        json!({"name": "wait", "type": "delay", "seconds": 60}),
        json!({"name": "model", "type": "llm", "model": "practice/rewrite@10000ms", "user": "a b c d e f"}),
    ];
    let graph = json!({"format": "graph/1", "nodes": nodes, "edges": [
        {"from": "START", "to": "first"}, {"from": "first", "to": "wait"}, {"from": "first", "to": "model"},
        {"from": "wait", "to": "END"}, {"from": "model", "to": "END"}]});
    let workflow = WorkflowBuilder::new(client.clone()).graph(graph).create().await.id;
    let options = RunOptions { wait: None, idempotency_key: None };
    let run = client.begin_run(&workflow, &CreateRun::default(), &options).await.unwrap().run.id;
    let both_started = "SELECT (coalesce(string_agg(frames, ''), '') LIKE '%step_started%\"model\"%'
                     AND EXISTS (SELECT FROM run_steps WHERE node = 'wait'))::text FROM stream_events";
    until("both steps to start", async || database.scalar(both_started).await == "true").await;
    service.kill();
    oracle.measure_start(false, || service.start());
    // A new client, without the old connections.
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let trace = async || client.trace(&run).await.unwrap().interrupted;
    until("the run to resume", async || !trace().await.is_empty()).await;
    client.cancel_run(&run).await.unwrap();
    assert_eq!(runs::ended(&client, &run, runs::LIMIT).await["status"], "cancelled");
    let cut = trace().await;
    let mut named: Vec<_> = cut.iter().map(|cut| (cut.node.as_str(), cut.visit, cut.attempt)).collect();
    named.sort_unstable();
    assert_eq!(named, [("model", 1, 1), ("wait", 1, 1)], "{cut:?}");
    assert!(cut.iter().all(|cut| cut.started_at < cut.noticed_at), "{cut:?}");
    service.stop();
}
