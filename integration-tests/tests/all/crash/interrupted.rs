//! The trace of a run whose attempt a kill has cut off.

use client::{Client, RunOptions};
use integration_tests::{graphs, until};
use serde_json::json;
use store::testing::TestDatabase;
use wire::{CreateRun, CreateVersion, CreateWorkflow};

use super::oracle::Oracle;
use super::service::Service;
use super::{folder, runs};

#[tokio::test]
async fn an_attempt_that_a_kill_cuts_off_is_in_the_trace() {
    let database = TestDatabase::create().await;
    let folder = folder("interrupted");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.starting(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let new = CreateWorkflow { name: "slow".into(), handle: None, description: None, tags: Vec::new() };
    let workflow = client.create_workflow(&new).await.unwrap().id;
    let nodes = [json!({"name": "first", "type": "template", "template": "1"}), graphs::busy("slow", 2.0)];
    let version = CreateVersion {
        graph: graphs::chain(&nodes, None),
        runnable_config: None,
        metadata: None,
        notes: None,
    };
    client.save_version(&workflow, &version).await.unwrap();
    let options = RunOptions { wait: None, idempotency_key: None };
    let run = client.begin_run(&workflow, &CreateRun::default(), &options).await.unwrap().run.id;
    let begun = "SELECT count(*) FROM stream_events WHERE frames LIKE '%step_started%\"slow\"%'";
    until("the slow step begins", async || database.scalar(begun).await != "0").await;
    service.kill();
    oracle.starting(false, || service.start());
    assert_eq!(runs::ended(&client, &run).await["status"], "succeeded");
    let trace = client.trace(&run).await.unwrap();
    let [cut] = &trace.interrupted[..] else { panic!("{:?}", trace.interrupted) };
    assert_eq!((cut.node.as_str(), cut.visit, cut.attempt), ("slow", 1, 1));
    assert!(cut.started_at < cut.noticed_at, "{cut:?}");
    assert_eq!(trace.steps.len(), 2, "the attempt was made again: {:?}", trace.steps);
    service.stop();
}
