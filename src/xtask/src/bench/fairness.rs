//! Measures one workspace's chat turns alone, and again while another workspace's runs use all that they may.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::chat::request;
use super::load::{self, TurnTimes};
use super::server::{self, Server, count, post, post_with};
use crate::cluster::{self, Cluster};

/// The workspace with the greedy runs.
const BUSY: &str = "X-Workspace: busy\r\n";
/// Nodes in the inner workflow, in sequence.
const STEPS: usize = 40;
/// Calls to the inner workflow per run: with its nodes, nearly a run's maximum steps.
const CALLS: usize = 2_000;

pub(super) fn run(target: &Path, turns: usize, runs: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, turns, runs))
}

async fn measure(target: &Path, cluster: &Cluster, turns: usize, runs: usize) -> Result<()> {
    let (service, _) = server::callboard(target, cluster)?;
    let chat = published(&service).await?;
    prepare_busy(&service).await?;
    let request = request(&service.address, &chat);
    load::run(&service.address, &request, 1, turns / 4 + 1).await?;
    let before = load::run(&service.address, &request, 1, turns).await?.0;
    print("alone", &before);
    let began = server::now();
    let mut begun = Vec::new();
    for _ in 0..runs {
        let run = post_with(&service.address, "/api/workflows/load/runs", BUSY, "{}").await?;
        begun.push(run.get("id").and_then(Value::as_str).context("no run")?.to_owned());
    }
    server::pause(Duration::from_millis(500)).await;
    let meanwhile = load::run(&service.address, &request, 1, turns).await?.0;
    let measured = began.elapsed();
    let unfinished = unfinished(&service, &begun).await?;
    ensure!(unfinished > 0, "the load ended before the turns; start more runs or measure fewer turns");
    print(&format!("with {unfinished} of {runs} runs of another workspace unfinished"), &meanwhile);
    for run in &begun {
        post_with(&service.address, &format!("/api/runs/{run}/cancel"), BUSY, "").await?;
    }
    let moments: [(&str, Moment); 2] = [("first piece", first_piece), ("done", done)];
    for (name, of) in moments {
        let ratio = |percent| percentile(&meanwhile, percent, of) / percentile(&before, percent, of);
        println!("  {name}: ratio p50 {:.2}, p95 {:.2}, p99 {:.2}", ratio(50), ratio(95), ratio(99));
    }
    println!("  measured over {:.1} s", measured.as_secs_f64());
    Ok(())
}

/// Selects a moment of a turn.
type Moment = fn(&TurnTimes) -> Duration;

fn first_piece(taken: &TurnTimes) -> Duration {
    taken.first_piece
}

fn done(taken: &TurnTimes) -> Duration {
    taken.done
}

fn percentile(taken: &[TurnTimes], percent: usize, of: Moment) -> f64 {
    server::percentile(taken.iter().map(of).collect(), percent)
}

fn print(name: &str, taken: &[TurnTimes]) {
    let times = |of| [50, 95, 99].map(|percent| format!("{:.2}", percentile(taken, percent, of))).join(" ");
    let turns = count(taken.len());
    println!(
        "\n{name}: {turns:.0} turns; first piece {} ms, done {} ms (p50 p95 p99)",
        times(first_piece),
        times(done)
    );
}

async fn published(service: &Server) -> Result<String> {
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "echo", "type": "reply", "text": "{{ inputs.message }}", "pieces": "words"}],
        "edges": [{"from": "START", "to": "echo"}, {"from": "echo", "to": "END"}]
    });
    post(&service.address, "/api/workflows", r#"{"name":"Quiet"}"#).await?;
    post(&service.address, "/api/workflows/quiet/versions", &json!({"graph": graph}).to_string()).await?;
    let published = post(&service.address, "/api/workflows/quiet/publish", "{}").await?;
    Ok(published.pointer("/workflow/id").and_then(Value::as_str).context("no workflow id")?.to_owned())
}

/// Publishes a workflow that calls another one for many items, with maximum concurrency.
async fn prepare_busy(service: &Server) -> Result<()> {
    let name = |n: usize| format!("n{n}");
    let nodes: Vec<Value> = (0..STEPS)
        .map(|n| json!({"name": name(n), "type": "template", "template": "a light step"}))
        .collect();
    let mut edges =
        vec![json!({"from": "START", "to": name(0)}), json!({"from": name(STEPS - 1), "to": "END"})];
    edges.extend((1..STEPS).map(|n| json!({"from": name(n - 1), "to": name(n)})));
    let inner = json!({"format": "graph/1", "nodes": nodes, "edges": edges});
    let items: Vec<usize> = (0..CALLS).collect();
    let all = json!({"name": "all", "type": "for_each", "items": items, "concurrency": 32,
                     "body": {"type": "sub_workflow", "workflow": "light", "inputs": {}}});
    let outer = json!({"format": "graph/1", "nodes": [all],
                       "edges": [{"from": "START", "to": "all"}, {"from": "all", "to": "END"}]});
    post(&service.address, "/api/workspaces", r#"{"slug":"busy","name":"Busy"}"#).await?;
    for (handle, graph) in [("light", inner), ("load", outer)] {
        post_with(&service.address, "/api/workflows", BUSY, &json!({"name": handle}).to_string()).await?;
        let path = format!("/api/workflows/{handle}/versions");
        post_with(&service.address, &path, BUSY, &json!({"graph": graph}).to_string()).await?;
    }
    Ok(())
}

async fn unfinished(service: &Server, runs: &[String]) -> Result<usize> {
    let mut unfinished = 0;
    for run in runs {
        let record = server::get_with(&service.address, &format!("/api/runs/{run}"), BUSY).await?;
        let status = record.get("status").and_then(Value::as_str).unwrap_or_default();
        unfinished += usize::from(status == "running");
    }
    Ok(unfinished)
}
