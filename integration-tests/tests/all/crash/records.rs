//! Runs that store records, killed repeatedly: each run creates one record and changes it once.
//!
//! `CALLBOARD_CRASH_RECORDS` (16) sets the number of runs.

use client::Client;
use futures_util::future::join_all;
use integration_tests::{AnswerExt, JSON, graphs, pause};
use kernel::SeededRandom;
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use wire::{CreateVersion, CreateWorkflow};

use super::app_runs::{ready, start};
use super::service::Service;
use super::{SLOW_DISK, folder, number, random_delay, seed, wait_for_suspects};
use crate::apps::runs::release;

/// An app whose page runs a workflow that creates a record and changes it, with pauses around both.
async fn publish(base: &str, database: &TestDatabase) {
    let client = Client::builder(base).keep_cookies(false).build().unwrap();
    let new = CreateWorkflow { name: "keep".into(), handle: None, description: None, tags: Vec::new() };
    let workflow = client.create_workflow(&new).await.unwrap();
    let pause = |name: &str| json!({"name": name, "type": "delay", "seconds": 0.2});
    let nodes = [
        pause("before"),
        json!({"name": "put", "type": "collection_put", "collection": "likes", "data": {"n": "{{ inputs.n }}"}}),
        pause("between"),
        json!({"name": "change", "type": "collection_put", "collection": "likes", "id": "{{ results.put.record.id }}",
               "version": "{{ results.put.record.version }}", "data": {"n": "{{ inputs.n }}", "changed": true}}),
        pause("after"),
    ];
    let graph = graphs::chain(&nodes, Some(json!({"answer": "{{ results.change.record.version }}"})));
    let version = CreateVersion { graph, runnable_config: None, metadata: None, notes: None };
    let version = client.save_version(&workflow.id, &version).await.unwrap();
    let send = async |path: &str, body: Value| {
        let made = client.send("POST", path, &[JSON], body.to_string()).await.unwrap().expect(201);
        serde_json::from_slice::<Value>(&made.body).unwrap()
    };
    let app = send("/api/apps", json!({"alias": "notes", "name": "notes", "access": "public"})).await;
    let capabilities = json!({"anonymous": ["read"], "member": ["read"]});
    send(
        "/api/apps/notes/collections",
        json!({"name": "likes", "kind": "shared", "capabilities": capabilities}),
    )
    .await;
    let collection = database.scalar("SELECT id FROM app_collections").await;
    let binding = json!({
        "workflow_id": workflow.id, "workflow_handle": "keep", "version": 1, "version_id": version.0.version.id, "digest": "0".repeat(64),
        "runnable_config": null, "includes": [], "access_mode": "anonymous", "input_schema": null,
        "output_projection": {"fields": ["answer"]}, "visitor_can_read_output": true,
        "limits": {"max_concurrent": 10_000, "per_visitor_per_minute": 1_000_000, "timeout_seconds": 600},
    });
    let bindings: Map<String, Value> = [("form".to_owned(), binding)].into_iter().collect();
    let likes =
        json!({"likes": {"id": collection, "kind": "shared", "capabilities": capabilities, "schema": null}});
    database.execute(&release(app["id"].as_str().unwrap(), 1, 1, &bindings, &likes)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_leave_one_record_per_storing_run() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("records");
    let runs = usize::try_from(number("CALLBOARD_CRASH_RECORDS", 16)).unwrap();
    let seed = seed();
    println!("CALLBOARD_CRASH_SEED={seed} ({runs} runs, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut service = Service::new(&folder, Some(database.dsn()));
    for name in [
        "SERVICE_APPS_ANONYMOUS_RUNS_PER_MINUTE",
        "SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY",
        "SERVICE_APPS_ANONYMOUS_CONCURRENT",
        "SERVICE_APPS_RUNS_PER_DAY",
    ] {
        service.set(name, "1000000".to_owned());
    }
    tokio::task::block_in_place(|| service.start());
    ready(&service.base()).await;
    publish(&service.base(), &database).await;
    let address = service.address().to_owned();
    join_all((0..runs).map(|run| start(&address, run))).await;
    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    let mut kills = 0;
    while kills < 3 || kills < 30 && database.scalar(unfinished).await != "0" {
        pause(u64::try_from(random_delay(&random).as_millis()).unwrap() / 2).await;
        wait_for_suspects(&database).await;
        tokio::task::block_in_place(|| {
            service.kill();
            service.start();
        });
        ready(&service.base()).await;
        kills += 1;
    }
    println!("{kills} kills");
    integration_tests::until("every run has ended", async || database.scalar(unfinished).await == "0").await;
    for (sql, expected) in [
        ("SELECT count(*) FROM runs WHERE status = 'succeeded'", runs),
        ("SELECT count(*) FROM app_records", runs),
        ("SELECT count(DISTINCT data) FROM app_records", runs),
        ("SELECT count(*) FROM app_records WHERE version = 2", runs),
        ("SELECT record_count FROM app_collections", runs),
    ] {
        assert_eq!(database.scalar(sql).await, expected.to_string(), "{sql}");
    }
    let sums = "SELECT record_bytes = (SELECT sum(octet_length(data)) FROM app_records) FROM app_collections";
    assert_eq!(database.scalar(sums).await, "true");
    tokio::task::block_in_place(|| service.stop());
}
