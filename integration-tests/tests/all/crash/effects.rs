//! `kill -9` at random moments of runs with external effects: a test server counts the requests that reach it. Every
//! run ends, completed steps are not repeated, and non-idempotent calls are made at most once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use chrono::{DateTime, Utc};
use client::Client;
use integration_tests::{ReceivedRequest, TcpServer, WorkflowBuilder, graphs, pause};
use kernel::{Clock, SeededRandom, SystemClock};
use serde_json::{Value, json};
use store::testing::TestDatabase;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use wire::CreateRun;

use super::oracle::Oracle;
use super::service::Service;
use super::{SLOW_DISK, folder, kill_on, number, seed};

/// Clients that start runs concurrently.
const CLIENTS: usize = 4;
/// Longer than any run takes, including restarts.
const LIMIT: Duration = Duration::from_secs(60);

/// A request that has reached the outside: its path, its key and its time.
#[derive(Debug, Clone)]
struct Hit {
    path: String,
    key: String,
    at: DateTime<Utc>,
}

type Hits = Arc<Mutex<Vec<Hit>>>;

/// A server that accepts every request, and is slow to respond.
async fn external_server() -> (SocketAddr, Hits) {
    let hits = Hits::default();
    let received = Arc::clone(&hits);
    let server = TcpServer::start(move |stream| serve(stream, Arc::clone(&received))).await;
    (server.address, hits)
}

/// Serves the requests of one connection.
async fn serve(mut stream: TcpStream, hits: Hits) -> Option<()> {
    let mut unread = Vec::new();
    loop {
        let request = ReceivedRequest::read(&mut stream, &mut unread).await?;
        let path = request.head.split(' ').nth(1).unwrap().to_owned();
        let key = request.header("idempotency-key").unwrap_or_default().to_owned();
        hits.lock().await.push(Hit { path, key, at: SystemClock::new().now() });
        pause(30).await;
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";
        stream.write_all(answer).await.ok()?;
    }
}

/// Four calls in sequence; the output has the outcome of each.
fn graph(external_server: SocketAddr) -> Value {
    let call = |name: &str, method: &str, idempotent: bool| {
        json!({"name": name, "type": "http_request", "method": method, "idempotent": idempotent, "on_error": "continue",
               "url": format!("http://{external_server}/{name}/{{{{ run.id }}}}")})
    };
    let outcome = |name: &str| {
        format!(
            "{{{{ results.{name}.error.code if results.{name}.error is defined else results.{name}.status }}}}"
        )
    };
    let nodes = [
        call("once", "POST", false),
        call("again", "POST", true),
        json!({"name": "wait", "type": "delay", "seconds": 0.05}),
        call("read", "GET", false),
        call("last", "DELETE", false),
    ];
    let output = ["once", "again", "read", "last"].map(|name| (name.to_owned(), Value::from(outcome(name))));
    graphs::chain(&nodes, Some(Value::Object(output.into_iter().collect())))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_repeat_no_completed_external_call_and_every_run_ends() {
    let (address, hits) = external_server().await;
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("effects");
    let mut service = Service::new(&folder, Some(database.dsn()));
    service.set("SERVICE_EGRESS_ALLOW", json!([address.to_string()]).to_string());
    let (seed, kills) = (seed(), number("CALLBOARD_CRASH_KILLS", 12).min(200));
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut oracle = Oracle::start(service.address(), &folder, 0, 0);
    oracle.measure_start(true, || service.start());
    let client = Client::builder(&service.base()).keep_cookies(false).build().unwrap();
    let workflow = WorkflowBuilder::new(client.clone()).graph(graph(address)).create().await.id;
    let stopped = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let (client, workflow, stopped) = (client.clone(), workflow.clone(), Arc::clone(&stopped));
            tokio::spawn(async move { keep_starting(&client, &workflow, number, &stopped).await })
        })
        .collect();
    kill_on(kills, &random, &mut service, &mut oracle);
    stopped.store(true, Ordering::Relaxed);
    let mut runs = Vec::new();
    for client in clients {
        runs.extend(client.await.unwrap());
    }
    let mut unknown = 0;
    for run in &runs {
        unknown += judge(&client, run, &hits).await;
    }
    println!(
        "{} runs were acknowledged; of {unknown} calls it was not known whether they were made",
        runs.len()
    );
    assert!(runs.len() > CLIENTS, "too few runs were started");
    let unfinished = database.scalar("SELECT count(*) FROM runs WHERE finished_at IS NULL").await;
    assert_eq!(unfinished, "0", "unacknowledged runs end, too");
    service.stop();
}

/// Starts one run after another, each with a key, and repeats each start until it is acknowledged, despite kills.
async fn keep_starting(client: &Client, workflow: &str, number: usize, stopped: &AtomicBool) -> Vec<String> {
    let mut runs = Vec::new();
    for count in 0.. {
        if stopped.load(Ordering::Relaxed) {
            break;
        }
        let options = client::RunOptions { wait: None, idempotency_key: Some(format!("{number}-{count}")) };
        let run = loop {
            match client.begin_run(workflow, &CreateRun::default(), &options).await {
                Ok(created) => break created.run.id,
                Err(_) => pause(20).await,
            }
        };
        runs.push(run);
        pause(60).await;
    }
    runs
}

/// Compares a run's end with the requests that reached the outside; returns the number of calls with an unknown
/// outcome.
async fn judge(client: &Client, run: &str, hits: &Hits) -> usize {
    let ended = kernel::timeout(&SystemClock::new(), LIMIT, async {
        loop {
            let record = client.run(run).await.unwrap();
            if record.finished_at.is_some() {
                return record;
            }
            pause(50).await;
        }
    })
    .await
    .unwrap_or_else(|| panic!("run {run} does not end"));
    assert_eq!(ended.status, wire::RunState::Succeeded, "{ended:?}");
    let trace = client.trace(run).await.unwrap();
    let completed: BTreeMap<&str, DateTime<Utc>> = trace
        .steps
        .iter()
        .filter(|step| step.status == "succeeded")
        .map(|step| (step.node.as_str(), step.finished_at.as_ref().unwrap().parse().unwrap()))
        .collect();
    let hits = hits.lock().await;
    let mut unknown = 0;
    for (name, outcome) in ended.output.as_object().unwrap() {
        let path = format!("/{name}/{run}");
        let mine: Vec<&Hit> = hits.iter().filter(|hit| hit.path == path).collect();
        let at = format!("{name} of run {run}: {outcome}, {mine:?}");
        match outcome.as_str() {
            Some("node.outcome_unknown") => {
                unknown += 1;
                assert!(["once", "last"].contains(&name.as_str()), "{at}");
                assert!(mine.len() <= 1, "called twice: {at}");
            }
            _ => {
                assert_eq!(outcome, &json!(200), "{at}");
                let once = ["once", "last"].contains(&name.as_str());
                assert!(if once { mine.len() == 1 } else { !mine.is_empty() }, "{at}");
                assert!(
                    mine.iter().all(|hit| hit.at <= completed[name.as_str()]),
                    "called again after its end: {at}"
                );
            }
        }
        assert!(
            mine.iter().all(|hit| !hit.key.is_empty() && hit.key == mine[0].key),
            "all attempts share one key: {at}"
        );
    }
    unknown
}
