//! Measures evaluation cases without a model, compared with bare inserts of rows of the same size.

use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tokio_postgres::NoTls;

use super::outcome::{Gates, Outcome};
use super::process;
use super::server::{self, count, get_with, now, pause, post, post_with};
use crate::cluster::{self, Cluster};

/// Cases in flight, and floor connections.
const CONCURRENCY: usize = 8;
/// The minimum cases per second.
const LEAST: f64 = 2_000.0;
/// Maximum MiB that the process may grow after the first tenth of the cases.
const GROWTH: f64 = 16.0;
/// Rows that the floor inserts.
const ROWS: usize = 20_000;
const INTERVAL: Duration = Duration::from_millis(100);

pub(super) fn run(target: &Path, cases: usize) -> Result<()> {
    ensure!(cases >= 10, "at least 10 cases");
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    actix_rt::System::new().block_on(measure(target, &cluster, cases))
}

/// The service's resident MiB, measured after a tenth of the cases.
#[derive(Default)]
struct ResidentMemory {
    first: Option<f64>,
    most: f64,
}

async fn measure(target: &Path, cluster: &Cluster, cases: usize) -> Result<()> {
    let (service, _) = server::callboard(target, cluster)?;
    let (address, process) = (service.address.as_str(), service.child.id());
    create_dataset(address, cases).await?;
    let before = inserts(cluster).await?;
    let began = now();
    let path = start_evaluation(address).await?;
    let (record, memory) = watch(address, &path, process, cases).await?;
    let rate = count(cases) / began.elapsed().as_secs_f64();
    ensure!(record.get("status") == Some(&json!("succeeded")), "{record}");
    ensure!(record.get("best_score") == Some(&json!(1.0)), "{record}");
    let floor = f64::midpoint(before, inserts(cluster).await?);
    println!(
        "\n{cases} cases, {CONCURRENCY} at the same time, from the request to the end\n  {rate:.0} cases/s; bare inserts \
         of their rows on {CONCURRENCY} connections {floor:.0}/s; ratio {:.2}",
        rate / floor
    );
    let mut gates = Gates::default();
    gates.add(
        Outcome::from_passed(rate >= LEAST),
        format!("cases per second, at least {LEAST:.0}: {rate:.0}"),
    );
    match memory.first {
        Some(first) => {
            let (growth, most) = (memory.most - first, memory.most);
            let told = format!(
                "memory growth after a tenth of the cases in MiB, at most {GROWTH:.0}: {growth:.1} (from {first:.1} to at most {most:.1})"
            );
            gates.add(Outcome::from_passed(growth <= GROWTH), told);
        }
        None => gates.add(Outcome::NotMeasured, "memory: the run ended before it was measured".to_owned()),
    }
    gates.print();
    gates.conclude()
}

/// Creates a workflow without a model, and its dataset.
async fn create_dataset(address: &str, cases: usize) -> Result<()> {
    post(address, "/api/workflows", r#"{"name":"Cases"}"#).await?;
    let node = json!({"name": "say", "type": "template", "template": "{{ inputs.message | upper }}"});
    let edges = json!([{"from": "START", "to": "say"}, {"from": "say", "to": "END"}]);
    let graph =
        json!({"format": "graph/1", "nodes": [node], "edges": edges, "output": "{{ results.say.text }}"});
    post(address, "/api/workflows/cases/versions", &json!({"graph": graph}).to_string()).await?;
    let mut lines = String::new();
    for number in 0..cases {
        writeln!(lines, r#"{{"inputs":{{"message":"case {number}"}},"expected_output":"CASE {number}"}}"#)?;
    }
    let kind = "Content-Type: application/x-ndjson\r\n";
    post_with(address, "/api/workflows/cases/datasets?name=all", kind, &lines).await?;
    Ok(())
}

/// Starts the evaluation; returns its path.
async fn start_evaluation(address: &str) -> Result<String> {
    let evaluation = json!({"dataset": {"id": "all"}, "max_concurrency": CONCURRENCY,
        "evaluators": [{"id": "same", "entrypoint": "builtin:exact_match"}]});
    let body = json!({"evaluation": evaluation}).to_string();
    let started = post(address, "/api/workflows/cases/trainer/runs", &body).await?;
    let id = started.get("id").and_then(Value::as_str).context("a run without an id")?;
    Ok(format!("/api/workflows/cases/trainer/runs/{id}"))
}

/// Waits for the run's end and watches the memory of `process`; returns the run's record.
async fn watch(address: &str, path: &str, process: u32, cases: usize) -> Result<(Value, ResidentMemory)> {
    let mut memory = ResidentMemory::default();
    loop {
        pause(INTERVAL).await;
        let record = get_with(address, path, "").await?;
        let done = record.pointer("/progress/done").and_then(Value::as_u64).unwrap_or_default();
        let resident = process::resident_mib(process)?;
        if memory.first.is_none() && usize::try_from(done)? >= cases / 10 {
            memory.first = Some(resident);
        }
        if memory.first.is_some() {
            memory.most = memory.most.max(resident);
        }
        if !matches!(record.get("status").and_then(Value::as_str), Some("queued" | "running")) {
            return Ok((record, memory));
        }
    }
}

/// Rows per second, with one connection per case in flight.
async fn inserts(cluster: &Cluster) -> Result<f64> {
    let mut clients = Vec::new();
    for _ in 0..CONCURRENCY {
        let (client, connection) = tokio_postgres::connect(&cluster.dsn(), NoTls).await?;
        actix_rt::spawn(connection);
        clients.push(client);
    }
    if let Some(first) = clients.first() {
        let table = "DROP TABLE IF EXISTS bench_cases; CREATE TABLE bench_cases (run_id uuid, case_index int, result text)";
        first.batch_execute(table).await?;
    }
    let result = "x".repeat(400);
    let began = now();
    let work = clients.iter().map(|client| async {
        let insert = client.prepare("INSERT INTO bench_cases VALUES (gen_random_uuid(), $1, $2)").await?;
        for number in 0..ROWS / CONCURRENCY {
            client.execute(&insert, &[&i32::try_from(number).unwrap_or(0), &result]).await?;
        }
        Result::<_, tokio_postgres::Error>::Ok(())
    });
    try_join_all(work).await?;
    Ok(count(ROWS) / began.elapsed().as_secs_f64())
}
