//! Measures durable run steps, compared with bare inserts of the same rows, and the time to check a large graph.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use super::server::{self, Server, count, now, post};
use crate::cluster::{self, Cluster};

/// Nodes in the run, in sequence.
const STEPS: usize = 40;
/// Concurrent runs for the throughput measurement.
const AT_ONCE: usize = 16;
/// Nodes in the checked graph.
const LARGE: usize = 500;
/// A bare table with a journal row's columns.
const TABLE: &str =
    "CREATE TABLE bench_steps (run_id uuid, node text, visit int, attempt int, step int, status text,
    input_digest bytea, result text, started_at timestamptz, PRIMARY KEY (run_id, node, visit, attempt))";
const INSERT: &str =
    "INSERT INTO bench_steps VALUES (gen_random_uuid(), $1, 1, 1, 1, 'succeeded', $2, $3, now())";

pub(super) fn run(target: &Path, runs: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, runs))
}

async fn measure(target: &Path, cluster: &Cluster, runs: usize) -> Result<()> {
    let (service, _) = server::callboard(target, cluster)?;
    post(&service.address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    let version = json!({"graph": chain(STEPS)}).to_string();
    post(&service.address, "/api/workflows/bench/versions", &version).await?;
    sequential(&service, cluster, runs).await?;
    at_once(&service, cluster, runs).await?;
    checked(&service).await
}

/// One run at a time: the time per step from one row to the next, compared with a bare insert.
async fn sequential(service: &Server, cluster: &Cluster, runs: usize) -> Result<()> {
    inserts(cluster, 1, STEPS).await?;
    one_after_the_other(service, runs / 10 + 1).await?;
    let before = inserts(cluster, 1, runs * STEPS).await?.0;
    let ours = one_after_the_other(service, runs).await?;
    let after = inserts(cluster, 1, runs * STEPS).await?.0;
    let floor = f64::midpoint(server::percentile(before, 50), server::percentile(after, 50));
    let [p50, p95, p99] = [50, 95, 99].map(|percent| server::percentile(ours.clone(), percent));
    let step = p50 / count(STEPS);
    println!(
        "\n{STEPS} sequential steps, {runs} runs one at a time\n  a run: {p50:.1} ms (p95 {p95:.1}, p99 {p99:.1}); a \
         step: {step:.2} ms\n  bare insert: {floor:.2} ms; overhead of a durable step: {:.2} ms, ratio {:.2}",
        step - floor,
        step / floor
    );
    Ok(())
}

/// Concurrent runs: steps per second, compared with bare inserts on as many connections.
async fn at_once(service: &Server, cluster: &Cluster, runs: usize) -> Result<()> {
    let before = inserts(cluster, AT_ONCE, runs * STEPS).await?.1;
    let began = now();
    let clients = (0..AT_ONCE).map(|_| one_after_the_other(service, runs / AT_ONCE + 1));
    let taken: usize = try_join_all(clients).await?.iter().map(Vec::len).sum();
    let ours = count(taken * STEPS) / began.elapsed().as_secs_f64();
    let after = inserts(cluster, AT_ONCE, runs * STEPS).await?.1;
    let floor = f64::midpoint(before, after);
    println!(
        "\n{AT_ONCE} runs at the same time\n  {ours:.0} steps/s; bare inserts on {AT_ONCE} connections {floor:.0}/s; \
         ratio {:.2}",
        ours / floor
    );
    Ok(())
}

async fn checked(service: &Server) -> Result<()> {
    let body = json!({"graph": chain(LARGE)}).to_string();
    let mut times = Vec::new();
    for _ in 0..50 {
        let began = now();
        let answer = post(&service.address, "/api/workflows/check", &body).await?;
        times.push(began.elapsed());
        ensure!(answer.get("valid") == Some(&json!(true)), "{answer}");
    }
    let [p50, p99] = [50, 99].map(|percent| server::percentile(times.clone(), percent));
    println!("\na graph of {LARGE} nodes checked over HTTP: {p50:.1} ms (p99 {p99:.1})");
    Ok(())
}

/// Each run's duration, from its request to its result.
async fn one_after_the_other(service: &Server, runs: usize) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(runs);
    for _ in 0..runs {
        let began = now();
        let run = post(&service.address, "/api/workflows/bench/runs?wait=60", "{}").await?;
        times.push(began.elapsed());
        ensure!(run.get("status") == Some(&json!("succeeded")), "{run}");
    }
    Ok(times)
}

/// Inserts journal rows one by one on each of `connections`; returns the duration of each, and rows per second.
async fn inserts(cluster: &Cluster, connections: usize, rows: usize) -> Result<(Vec<Duration>, f64)> {
    let mut clients = Vec::new();
    for _ in 0..connections {
        let (client, connection) = tokio_postgres::connect(&cluster.dsn(), NoTls).await?;
        tokio::spawn(connection);
        clients.push(client);
    }
    if let Some(first) = clients.first() {
        first.batch_execute(&format!("DROP TABLE IF EXISTS bench_steps; {TABLE}")).await?;
    }
    let began = now();
    let work = clients.iter().map(|client| async {
        let insert = client.prepare(INSERT).await?;
        let mut times = Vec::new();
        for n in 0..rows / connections {
            let (node, digest) = (format!("n{}", n % STEPS), [7_u8; 32]);
            let began = now();
            client.execute(&insert, &[&node, &&digest[..], &r#"{"text":"a light step"}"#]).await?;
            times.push(began.elapsed());
        }
        Result::<_, tokio_postgres::Error>::Ok(times)
    });
    let times = try_join_all(work).await?.concat();
    let rate = count(times.len()) / began.elapsed().as_secs_f64();
    Ok((times, rate))
}

/// A chain of light nodes, each with a text from the previous one.
fn chain(nodes: usize) -> Value {
    let name = |n: usize| format!("n{n}");
    let node = |n: usize| {
        let text =
            if n == 0 { "a light step".to_owned() } else { format!("{{{{ results.n{}.text }}}}", n - 1) };
        json!({"name": name(n), "type": "template", "template": text})
    };
    let edge = |n: usize| {
        json!({"from": if n == 0 { "START".to_owned() } else { name(n - 1) },
               "to": if n == nodes { "END".to_owned() } else { name(n) }})
    };
    let (nodes_, edges): (Vec<_>, Vec<_>) = ((0..nodes).map(node).collect(), (0..=nodes).map(edge).collect());
    json!({"format": "graph/1", "nodes": nodes_, "edges": edges, "output": "{{ results.n0.text }}"})
}
