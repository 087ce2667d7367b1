//! Measures chat turns and the floor, and prints both.

use std::env;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use super::load::{self, TurnTimes};
use super::process::{cpu_alone, cpu_with_children, resident_mib};
use super::server::{self, Server, count, post};
use crate::cluster::{self, Cluster};

/// Twenty words: twenty pieces.
const TEXT: &str = "one two three four five six seven eight nine ten \
    eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty";
const CONCURRENCY: [usize; 3] = [1, 8, 64];

/// One measurement's figures.
struct ChatFigures {
    turns_per_second: f64,
    service_ms: f64,
    database_ms: f64,
    taken: Vec<TurnTimes>,
}

pub(super) fn run(target: &Path, turns: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, turns))
}

async fn measure(target: &Path, cluster: &Cluster, turns: usize) -> Result<()> {
    let floor = start_floor(cluster)?;
    let (service, ready, workflows) = start_service(target, cluster).await?;
    println!("\nready on a new database after {:.0} ms", ready.as_secs_f64() * 1e3);
    println!("service at idle: {:.1} MiB resident", resident_mib(service.child.id())?);
    let [by_words, at_once] = workflows.map(|workflow| request(&service.address, &workflow));
    let postmaster = cluster.pid().context("the database is gone")?;
    println!(
        "\n{:<10} {:>5} {:>9} {:>11} {:>11} {:>11}   accepted / first piece / done, ms (p50 p95 p99)",
        "", "at", "turns/s", "CPU ms/turn", "service", "database"
    );
    for at in CONCURRENCY {
        let turns = match at {
            1 => turns / 8,
            8 => turns / 2,
            _ => turns,
        };
        // The floor runs before and after, because the machine's speed varies.
        let before = one("floor", &floor, &by_words, at, turns / 2, postmaster).await?;
        let ours = one("by words", &service, &by_words, at, turns, postmaster).await?;
        let whole = one("at once", &service, &at_once, at, turns, postmaster).await?;
        let after = one("floor", &floor, &by_words, at, turns / 2, postmaster).await?;
        let floor_cpu = (before.service_ms + before.database_ms + after.service_ms + after.database_ms) / 2.0;
        let floor_wall = (before.turns_per_second + after.turns_per_second) / 2.0;
        let commit = percentile(&ours.taken, 50, |taken| taken.accepted);
        let piece = percentile(&ours.taken, 50, |taken| taken.first_piece);
        println!(
            "{:<10} {at:>5}   turns per core-second {:.2} of the floor by words, {:.2} at once; turns/s {:.2}; first piece \
             p50 {piece:.2} ms, twice acceptance p50 {:.2} ms",
            "ratio",
            floor_cpu / (ours.service_ms + ours.database_ms),
            floor_cpu / (whole.service_ms + whole.database_ms),
            ours.turns_per_second / floor_wall,
            2.0 * commit,
        );
    }
    println!("\nservice after all turns: {:.1} MiB resident", resident_mib(service.child.id())?);
    Ok(())
}

async fn one(
    name: &str,
    server: &Server,
    request: &str,
    at: usize,
    turns: usize,
    postmaster: u32,
) -> Result<ChatFigures> {
    load::run(&server.address, request, at, turns / 10 + at).await?;
    let pid = server.child.id();
    let (service, database) = (cpu_alone(pid)?, cpu_with_children(postmaster)?);
    let (taken, wall) = load::run(&server.address, request, at, turns).await?;
    let per_turn = |seconds: f64| seconds * 1e3 / count(taken.len());
    let figures = ChatFigures {
        turns_per_second: count(taken.len()) / wall.as_secs_f64(),
        service_ms: per_turn(cpu_alone(pid)? - service),
        database_ms: per_turn(cpu_with_children(postmaster)? - database),
        taken,
    };
    let times = |of: fn(&TurnTimes) -> Duration| {
        [50, 95, 99].map(|p| format!("{:.2}", percentile(&figures.taken, p, of))).join(" ")
    };
    println!(
        "{name:<10} {at:>5} {:>9.0} {:>11.3} {:>11.3} {:>11.3}   {} / {} / {}",
        figures.turns_per_second,
        figures.service_ms + figures.database_ms,
        figures.service_ms,
        figures.database_ms,
        times(|taken| taken.accepted),
        times(|taken| taken.first_piece),
        times(|taken| taken.done),
    );
    Ok(figures)
}

/// A percentile in milliseconds.
fn percentile(taken: &[TurnTimes], percent: usize, of: impl Fn(&TurnTimes) -> Duration) -> f64 {
    server::percentile(taken.iter().map(of).collect(), percent)
}

fn start_floor(cluster: &Cluster) -> Result<Server> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["floor", &cluster.dsn()]);
    Server::start(&mut command)
}

/// A service with two workflows: one replies word by word, the other in one piece.
async fn start_service(target: &Path, cluster: &Cluster) -> Result<(Server, Duration, [String; 2])> {
    let (server, ready) = server::callboard(target, cluster)?;
    let by_words = serde_json::json!({"name": "echo", "type": "reply", "text": "{{ inputs.message }}", "pieces": "words"});
    let at_once = serde_json::json!({"name": "echo", "type": "reply", "text": "{{ inputs.message }}"});
    let by_words = publish(&server, "words", &by_words).await?;
    let at_once = publish(&server, "whole", &at_once).await?;
    Ok((server, ready, [by_words, at_once]))
}

/// Publishes a workflow with one node, and returns its id.
async fn publish(server: &Server, name: &str, node: &serde_json::Value) -> Result<String> {
    let edges = serde_json::json!([{"from": "START", "to": "echo"}, {"from": "echo", "to": "END"}]);
    let graph = serde_json::json!({"graph": {"format": "graph/1", "nodes": [node], "edges": edges}});
    let (address, workflow) = (&server.address, format!("/api/workflows/{name}"));
    post(address, "/api/workflows", &serde_json::json!({"name": name}).to_string()).await?;
    post(address, &format!("{workflow}/versions"), &graph.to_string()).await?;
    let published = post(address, &format!("{workflow}/publish"), "{}").await?;
    Ok(published.pointer("/workflow/id").and_then(|id| id.as_str()).context("no workflow id")?.to_owned())
}

pub(super) fn request(address: &str, workflow: &str) -> String {
    let body = serde_json::json!({
        "type": "threads.create", "workflow_id": workflow,
        "params": {"input": {"content": [{"type": "input_text", "text": TEXT}], "attachments": [],
                             "inference_options": {}}}
    })
    .to_string();
    let head = format!("POST /api/chat HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}
