//! `kill -9` during workflow runs of every shape: all acknowledged runs end as they would without kills, and no
//! completed step is repeated.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client::{Answer, Client, ClientError};
use futures_util::{StreamExt, stream};
use integration_tests::{JSON, graphs, pause};
use kernel::{SeededRandom, SystemClock};
use serde_json::{Value, json};
use store::testing::TestDatabase;
use wire::{CreateVersion, CreateWorkflow};

use super::oracle::Oracle;
use super::service::Service;
use super::{SLOW_DISK, folder, kill_on, number, seed};

/// Clients that start runs concurrently.
const CLIENTS: usize = 6;
/// Runs checked concurrently.
const JUDGED: usize = 8;
/// Longer than any run takes, including restarts.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// A graph shape with its expected output for the input `n`.
pub(super) struct Shape {
    name: &'static str,
    graph: Value,
    expect: fn(u64) -> Value,
}

fn edges(pairs: Value) -> Value {
    let pairs = pairs.as_array().unwrap().iter();
    pairs.map(|pair| json!({"from": pair[0], "to": pair[1]})).collect()
}

pub(super) fn shapes() -> Vec<Shape> {
    let wait = |name: &str, seconds: f64| json!({"name": name, "type": "delay", "seconds": seconds});
    let add =
        |name: &str, expression: &str| json!({"name": name, "type": "transform", "expression": expression});
    vec![
        Shape {
            name: "chain",
            graph: graphs::chain(
                &[
                    add("a", "inputs.n + 1"),
                    wait("w", 0.2),
                    add("b", "results.a * 2"),
                    wait("v", 0.2),
                    add("c", "results.b + 1"),
                ],
                Some(json!("{{ results.c }}")),
            ),
            expect: |n| json!((n + 1) * 2 + 1),
        },
        Shape {
            name: "fan-out and join",
            graph: json!({
                "format": "graph/1", "state": {"sum": {"merge": "sum"}},
                "nodes": [
                    {"name": "a", "type": "transform", "expression": "inputs.n", "state": {"sum": "{{ results.a }}"}},
                    {"name": "b", "type": "delay", "seconds": 0.3, "state": {"sum": "{{ 10 }}"}},
                    {"name": "c", "type": "delay", "seconds": 0.1, "state": {"sum": "{{ 100 }}"}},
                    add("d", "state.sum")],
                "edges": edges(json!([["START", "a"], ["START", "b"], ["START", "c"], [["a", "b", "c"], "d"], ["d", "END"]])),
                "output": "{{ results.d }}"}),
            expect: |n| json!(n + 110),
        },
        Shape {
            name: "loop",
            graph: json!({
                "format": "graph/1", "state": {"count": {"merge": "sum"}},
                "nodes": [
                    {"name": "step", "type": "delay", "seconds": 0.08, "state": {"count": "{{ 1 }}"}},
                    {"name": "end", "type": "template", "template": "{{ state.count }} of {{ inputs.n }}"}],
                "edges": [{"from": "START", "to": "step"},
                          {"from": "step", "cases": [{"when": "state.count < 6", "to": "step"}], "else": "end"},
                          {"from": "end", "to": "END"}],
                "output": "{{ results.end.text }}"}),
            expect: |n| json!(format!("6 of {n}")),
        },
        Shape {
            name: "for each",
            graph: graphs::chain(
                &[
                    json!({"name": "each", "type": "for_each", "items": "{{ range(12) }}", "concurrency": 3,
                         "body": {"type": "delay", "seconds": 0.06}}),
                    add("last", "(results.each.items | length) + inputs.n"),
                ],
                Some(json!("{{ results.last }}")),
            ),
            expect: |n| json!(n + 12),
        },
        Shape {
            name: "sub-workflow",
            graph: graphs::chain(
                &[
                    json!({"name": "inner", "type": "sub_workflow", "workflow": "chain", "inputs": {"n": "{{ inputs.n }}"}}),
                    wait("w", 0.1),
                    add("out", "results.inner + 1000"),
                ],
                Some(json!("{{ results.out }}")),
            ),
            expect: |n| json!((n + 1) * 2 + 1001),
        },
        Shape {
            name: "words",
            graph: graphs::chain(
                &[
                    json!({"name": "say", "type": "reply", "text": "one two three {{ inputs.n }} five", "pieces": "words",
                         "pause_ms": 40}),
                    json!({"name": "again", "type": "reply", "text": " six seven", "pieces": "words", "pause_ms": 40}),
                ],
                Some(json!("{{ results.say.text }}{{ results.again.text }}")),
            ),
            expect: |n| json!(format!("one two three {n} five six seven")),
        },
        Shape {
            name: "failure that leads elsewhere",
            graph: json!({
                "format": "graph/1",
                "nodes": [
                    {"name": "try", "type": "delay", "seconds": 5, "timeout_seconds": 0.1, "on_error": {"to": "after"},
                     "retry": {"max_attempts": 3, "initial_delay_seconds": 0.05, "jitter": false}},
                    {"name": "never", "type": "template", "template": "never"},
                    {"name": "after", "type": "template", "template": "{{ results.try.error.code }} {{ inputs.n }}"}],
                "edges": edges(json!([["START", "try"], ["try", "never"], ["never", "END"], ["after", "END"]])),
                "output": "{{ results.after.text }}"}),
            expect: |n| json!(format!("node.timeout {n}")),
        },
        Shape {
            name: "large result",
            graph: graphs::chain(
                &[
                    json!({"name": "big", "type": "template", "template": "{% for i in range(4000) %}0123456789{% endfor %}{{ inputs.n }}"}),
                    wait("w", 0.2),
                    add("long", "results.big.text | length"),
                ],
                Some(json!("{{ results.long }}")),
            ),
            expect: |n| json!(40_000 + n.to_string().len()),
        },
    ]
}

/// An acknowledged run.
pub(super) struct Acknowledged {
    pub(super) shape: usize,
    n: u64,
    id: String,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_repeat_no_completed_step_and_every_run_ends() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("runs");
    let mut service = Service::new(&folder, Some(database.dsn()));
    let (seed, kills) = (seed(), number("CALLBOARD_CRASH_KILLS", 15).min(100));
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let workflows = Arc::new(create(&client).await);
    let stopped = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, workflows, stopped) = (client.clone(), Arc::clone(&workflows), Arc::clone(&stopped));
            tokio::spawn(async move { keep_starting(&client, &workflows, number, 60, &stopped).await })
        })
        .collect();
    kill_on(kills, &random, &mut service, &mut oracle);
    stopped.store(true, Ordering::Relaxed);
    let mut acknowledged = Vec::new();
    for client in clients {
        acknowledged.extend(client.await.unwrap());
    }
    assert!(acknowledged.len() > CLIENTS, "too few runs were started");
    println!("{} runs were acknowledged", acknowledged.len());
    let resumed = judge_all(&client, &acknowledged).await;
    println!("runs were resumed {resumed} times after a kill");
    assert!(kills < 5 || resumed > 0, "no kill hit a run");
    let unfinished = database.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await;
    assert_eq!(unfinished, "0", "unacknowledged runs end, too");
    service.stop();
}

pub(super) async fn create(client: &Client) -> Vec<String> {
    let mut ids = Vec::new();
    for shape in shapes() {
        let handle = (shape.name == "chain").then(|| "chain".to_owned());
        let new = CreateWorkflow { name: shape.name.into(), handle, description: None, tags: Vec::new() };
        let workflow = client.create_workflow(&new).await.unwrap();
        let version =
            CreateVersion { graph: shape.graph, runnable_config: None, metadata: None, notes: None };
        client.save_version(&workflow.id, &version).await.unwrap();
        ids.push(workflow.id);
    }
    ids
}

/// Starts one run after another, each with a key, and repeats each start until it is acknowledged, despite kills;
/// `rest`: milliseconds in between.
pub(super) async fn keep_starting(
    client: &Client,
    workflows: &[String],
    number: usize,
    rest: u64,
    stopped: &AtomicBool,
) -> Vec<Acknowledged> {
    let mut acknowledged = Vec::new();
    for count in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let (shape, n) = ((number + count) % workflows.len(), u64::try_from(count).unwrap());
        let path = format!("/api/workflows/{}/runs", workflows[shape]);
        let (key, body) = (format!("{number}-{count}"), json!({"inputs": {"n": n}}));
        let id = loop {
            let headers = [("idempotency-key", key.as_str())];
            if let Ok(answer) = ask(client, "POST", &path, &headers, &body).await {
                if answer.status == 202 {
                    break answer.json().unwrap()["id"].as_str().unwrap().to_owned();
                }
                assert!(answer.status == 503, "{} {}", answer.status, answer.text());
            }
            pause(20).await;
        };
        acknowledged.push(Acknowledged { shape, n, id });
        pause(rest).await;
    }
    acknowledged
}

/// Waits until a run has ended, despite kills, and returns its record.
pub(super) async fn ended(client: &Client, run: &str, limit: Duration) -> Value {
    let path = format!("/api/runs/{run}");
    let mut last = Value::Null;
    let ending = async {
        loop {
            if let Ok(answer) = ask(client, "GET", &path, &[], &Value::Null).await {
                assert!([200, 503].contains(&answer.status), "{} {}", answer.status, answer.text());
                let record = answer.json().unwrap();
                if !record["finished_at"].is_null() {
                    return record;
                }
                last = record;
            }
            pause(50).await;
        }
    };
    let ended = kernel::timeout(&SystemClock::new(), limit, ending).await;
    ended.unwrap_or_else(|| panic!("run {run} does not end: {last}"))
}

/// Judges several runs at a time; returns how many times runs were resumed, in total.
pub(super) async fn judge_all(client: &Client, runs: &[Acknowledged]) -> usize {
    let shapes = shapes();
    let judged =
        stream::iter(runs).map(|run| judge(client, run, &shapes[run.shape])).buffer_unordered(JUDGED);
    judged.fold(0, async |resumed, run| resumed + run).await
}

/// Compares a run's end, trace and events with the expected ones; returns how many times it was resumed.
async fn judge(client: &Client, run: &Acknowledged, shape: &Shape) -> usize {
    let at = format!("run {} ({}, n = {})", run.id, shape.name, run.n);
    let ended = ended(client, &run.id, LIMIT).await;
    assert_eq!(
        (&ended["status"], &ended["output"]),
        (&json!("succeeded"), &(shape.expect)(run.n)),
        "{at}: {ended}"
    );
    let answer =
        ask(client, "GET", &format!("/api/runs/{}/events", run.id), &[], &Value::Null).await.unwrap();
    let events = integration_tests::events(&answer.text());
    let mut completed: BTreeSet<(String, u64)> = BTreeSet::new();
    let mut texts: BTreeMap<String, String> = BTreeMap::new();
    for (seq, event) in (1_u64..).zip(&events) {
        assert_eq!(event["seq"].as_u64(), Some(seq), "{at}");
        let payload = &event["payload"];
        let node = payload["node"].as_str().unwrap_or_default().to_owned();
        let visit = (node.clone(), payload["visit"].as_u64().unwrap_or_default());
        match event["type"].as_str().unwrap() {
            "step_started" => {
                assert!(!completed.contains(&visit), "{at}: {visit:?} starts again after its end");
                texts.remove(&node);
            }
            "step_completed" => assert!(completed.insert(visit.clone()), "{at}: {visit:?} completes twice"),
            "output_delta" => texts.entry(node).or_default().push_str(payload["text"].as_str().unwrap()),
            _ => {}
        }
    }
    let ends = ["run_completed", "run_failed", "run_cancelled"];
    let is_end = |event: &&Value| ends.contains(&event["type"].as_str().unwrap());
    assert_eq!(events.iter().filter(is_end).count(), 1, "{at}");
    assert_eq!(events.last().unwrap()["type"], "run_completed", "{at}");
    let trace = ask(client, "GET", &format!("/api/runs/{}/trace", run.id), &[], &Value::Null).await.unwrap();
    for step in trace.json().unwrap()["steps"].as_array().unwrap() {
        assert!(!step["finished_at"].is_null(), "{at}: {step} has no end");
        if let (Some(streamed), Some(text)) =
            (texts.get(step["node"].as_str().unwrap()), step["result"]["text"].as_str())
        {
            assert_eq!(streamed, text, "{at}: the pieces of the last attempt");
        }
    }
    events.iter().filter(|event| event["payload"]["resumed"] == true).count()
}

async fn ask(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Result<Answer, ClientError> {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    client.send(method, path, &[headers, &[JSON]].concat(), body).await
}
