//! Starts app runs, each many times at once on two instances that are killed meanwhile: one run and one handle per key.
//!
//! `CALLBOARD_CRASH_APP_KEYS` (24; 200 for the complete test) sets the number of keys.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use client::Client;
use integration_tests::{JSON, pause};
use kernel::{SeededRandom, SystemClock};
use serde_json::{Map, Value, json};
use store::testing::TestDatabase;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use wire::{CreateVersion, CreateWorkflow};

use super::service::Service;
use super::{SLOW_DISK, folder, number, random_delay, seed, wait_for_suspects};
use crate::apps::runs::release;

/// Concurrent requests with the same key.
const DUPLICATES: usize = 16;
/// Keys sent concurrently.
const TOGETHER: usize = 8;
/// The timeouts for a request, and for the end of a run.
const LIMIT: Duration = Duration::from_secs(20);
const ENDED: Duration = Duration::from_secs(120);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_of_two_instances_leave_one_run_and_handle_per_key() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("app-runs");
    let keys = usize::try_from(number("CALLBOARD_CRASH_APP_KEYS", 24)).unwrap();
    let seed = seed();
    println!("CALLBOARD_CRASH_SEED={seed} ({keys} keys, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut instances = ["one", "two"].map(|name| {
        let mut service = Service::new(&folder, Some(database.dsn())).named(name);
        // All clients share one address.
        for limit in
            ["ANONYMOUS_RUNS_PER_MINUTE", "ANONYMOUS_RUNS_PER_DAY", "ANONYMOUS_CONCURRENT", "RUNS_PER_DAY"]
        {
            let name: &'static str = Box::leak(format!("SERVICE_APPS_{limit}").into_boxed_str());
            service.set(name, "1000000".to_owned());
        }
        service
    });
    for service in &mut instances {
        tokio::task::block_in_place(|| service.start());
        ready(&service.base()).await;
    }
    let nodes = [
        json!({"name": "wait", "type": "delay", "seconds": 0.2}),
        json!({"name": "say", "type": "template", "template": "said {{ inputs.n }}"}),
    ];
    publish(&instances[0].base(), &database, &nodes, "{{ results.say.text }}").await;
    let addresses = Arc::new(instances.each_ref().map(|service| service.address().to_owned()));
    let next = Arc::new(AtomicUsize::new(0));
    let senders: Vec<_> = (0..TOGETHER)
        .map(|_| {
            let (addresses, next) = (Arc::clone(&addresses), Arc::clone(&next));
            tokio::spawn(async move {
                let mut handles = Vec::new();
                loop {
                    let key = next.fetch_add(1, Ordering::Relaxed);
                    if key >= keys {
                        return handles;
                    }
                    handles.push((key, duplicates(&addresses, key).await));
                }
            })
        })
        .collect();
    let mut kills = 0;
    while !senders.iter().all(tokio::task::JoinHandle::is_finished) {
        pause(u64::try_from(random_delay(&random).as_millis()).unwrap() / 2).await;
        wait_for_suspects(&database).await;
        let hit = kills % 2;
        tokio::task::block_in_place(|| {
            instances[hit].kill();
            instances[hit].start();
        });
        ready(&instances[hit].base()).await;
        kills += 1;
    }
    let mut handles = BTreeMap::new();
    for sender in senders {
        for (key, of_key) in sender.await.unwrap() {
            assert_eq!(of_key.len(), DUPLICATES);
            assert!(of_key.iter().all(|handle| *handle == of_key[0]), "key {key}: {of_key:?}");
            handles.insert(of_key[0].clone(), key);
        }
    }
    println!("{kills} kills");
    assert!(kills > 0, "no instance was killed");
    assert_eq!(handles.len(), keys, "one handle per key");
    let unfinished = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
    let ended = async {
        while database.scalar(unfinished).await != "0" {
            pause(100).await;
        }
    };
    kernel::timeout(&SystemClock::new(), ENDED, ended).await.expect("every run to end");
    for (sql, expected) in [
        ("SELECT count(*) FROM runs WHERE trigger = 'app'", keys),
        ("SELECT count(*) FROM runs WHERE status = 'succeeded'", keys),
        ("SELECT count(*) FROM app_runs a JOIN runs r ON r.id = a.run_id", keys),
        ("SELECT count(DISTINCT inputs) FROM runs", keys),
        // Each node has executed completely once.
        ("SELECT count(*) FROM run_steps WHERE node = 'say' AND status = 'succeeded'", keys),
    ] {
        assert_eq!(database.scalar(sql).await, expected.to_string(), "{sql}");
    }
    for (handle, key) in &handles {
        let (status, run) =
            ask(&addresses[0], "GET", &format!("/__service/runs/{handle}"), "", "").await.unwrap();
        assert_eq!((status, &run["output"]["answer"]), (200, &json!(format!("said {key}"))), "{run}");
    }
    for service in instances {
        tokio::task::block_in_place(|| service.stop());
    }
}

/// Publishes an app whose page runs a workflow with these nodes.
pub(super) async fn publish(base: &str, database: &TestDatabase, nodes: &[Value], answer: &str) {
    let client = Client::builder(base).keep_cookies(false).build().unwrap();
    let new = CreateWorkflow { name: "say".into(), handle: None, description: None, tags: Vec::new() };
    let workflow = client.create_workflow(&new).await.unwrap();
    let graph = integration_tests::graphs::chain(nodes, Some(json!({"answer": answer})));
    let version = CreateVersion { graph, runnable_config: None, metadata: None, notes: None };
    let version = client.save_version(&workflow.id, &version).await.unwrap();
    let app = json!({"alias": "notes", "name": "notes", "access": "public"}).to_string();
    let made = client.send("POST", "/api/apps", &[JSON], app).await.unwrap();
    let app: Value = serde_json::from_slice(&made.body).unwrap();
    let binding = json!({
        "workflow_id": workflow.id, "workflow_handle": "say", "version": 1, "version_id": version.0.version.id, "digest": "0".repeat(64),
        "runnable_config": null, "includes": [], "access_mode": "anonymous", "input_schema": null,
        "output_projection": {"fields": ["answer"]}, "visitor_can_read_output": true,
        "limits": {"max_concurrent": 10_000, "per_visitor_per_minute": 1_000_000, "timeout_seconds": 600},
    });
    let bindings: Map<String, Value> = [("form".to_owned(), binding)].into_iter().collect();
    database.execute(&release(app["id"].as_str().unwrap(), 1, 1, &bindings, &json!({}))).await.unwrap();
}

/// The handles from equal requests, half of them sent to each instance.
async fn duplicates(addresses: &[String; 2], key: usize) -> Vec<String> {
    let all = (0..DUPLICATES).map(|n| start(&addresses[n % 2], key));
    futures_util::future::join_all(all).await
}

/// Repeats a start until it gets a response.
pub(super) async fn start(address: &str, key: usize) -> String {
    let body = json!({"n": key}).to_string();
    loop {
        let response =
            ask(address, "POST", "/__service/workflows/form/runs", &format!("key-{key}"), &body).await;
        match response {
            Some((202, answer)) => return answer["handle"].as_str().unwrap().to_owned(),
            // The instance is killed, shutting down, or starting.
            None | Some((503, _)) => pause(50).await,
            Some((status, answer)) => panic!("{status} {answer}"),
        }
    }
}

/// Status and body of a response; `None` if the connection breaks.
pub(super) async fn ask(
    address: &str,
    method: &str,
    path: &str,
    key: &str,
    body: &str,
) -> Option<(u16, Value)> {
    let port = address.split_once(':').unwrap().1;
    let host = format!("notes.apps.localhost:{port}");
    let head =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: http://{host}\r\nConnection: close\r\n");
    let length = body.len();
    let more = if body.is_empty() {
        String::new()
    } else {
        format!("Content-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {length}\r\n")
    };
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.ok()?;
        stream.write_all(format!("{head}{more}\r\n{body}").as_bytes()).await.ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok()?;
        let (head, body) = text.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).ok()?))
    };
    kernel::timeout(&SystemClock::new(), LIMIT, exchange).await.flatten()
}

pub(super) async fn ready(base: &str) {
    let client = Client::builder(base).keep_cookies(false).build().unwrap();
    let is_ready = async || client.ready().await.is_ok_and(|answer| answer.status == 200);
    integration_tests::until("the instance is ready", is_ready).await;
}
