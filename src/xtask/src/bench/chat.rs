//! Measures chat turns beside the floor and prints both.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::load::{self, Taken};
use super::process::{cpu_alone, cpu_with_children, resident_mib};
use crate::cluster::{self, Cluster};

/// Twenty words: twenty pieces.
const TEXT: &str = "one two three four five six seven eight nine ten \
    eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty";
const CONCURRENCY: [usize; 3] = [1, 8, 64];

struct Server {
    child: Child,
    address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one measurement gave.
struct Figures {
    turns_per_second: f64,
    service_ms: f64,
    database_ms: f64,
    taken: Vec<Taken>,
}

pub(super) fn run(target: &Path, turns: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, turns))
}

async fn measure(target: &Path, cluster: &Cluster, turns: usize) -> Result<()> {
    let floor = start_floor(cluster)?;
    let (service, ready, workflow) = start_service(target, cluster).await?;
    println!("\nready on a new database after {:.0} ms", ready.as_secs_f64() * 1e3);
    println!("service at idle: {:.1} MiB resident", resident_mib(service.child.id())?);
    let request = request(&service.address, &workflow);
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
        // The floor before and after: the machine's mood changes.
        let before = one("floor", &floor, &request, at, turns / 2, postmaster).await?;
        let ours = one("callboard", &service, &request, at, turns, postmaster).await?;
        let after = one("floor", &floor, &request, at, turns / 2, postmaster).await?;
        let floor_cpu = (before.service_ms + before.database_ms + after.service_ms + after.database_ms) / 2.0;
        let floor_wall = (before.turns_per_second + after.turns_per_second) / 2.0;
        let commit = percentile(&ours.taken, 50, |taken| taken.accepted);
        let piece = percentile(&ours.taken, 50, |taken| taken.first_piece);
        println!(
            "{:<10} {at:>5}   turns per core-second {:.2} of the floor, turns/s {:.2}; first piece p50 {piece:.2} ms, \
             twice acceptance p50 {:.2} ms",
            "ratio",
            floor_cpu / (ours.service_ms + ours.database_ms),
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
) -> Result<Figures> {
    load::run(&server.address, request, at, turns / 10 + at).await?;
    let pid = server.child.id();
    let (service, database) = (cpu_alone(pid)?, cpu_with_children(postmaster)?);
    let (taken, wall) = load::run(&server.address, request, at, turns).await?;
    let per_turn = |seconds: f64| seconds * 1e3 / count(taken.len());
    let figures = Figures {
        turns_per_second: count(taken.len()) / wall.as_secs_f64(),
        service_ms: per_turn(cpu_alone(pid)? - service),
        database_ms: per_turn(cpu_with_children(postmaster)? - database),
        taken,
    };
    let times = |of: fn(&Taken) -> Duration| {
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

fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::NAN, f64::from)
}

/// Milliseconds.
fn percentile(taken: &[Taken], percent: usize, of: impl Fn(&Taken) -> Duration) -> f64 {
    let mut times: Vec<Duration> = taken.iter().map(of).collect();
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

fn start_floor(cluster: &Cluster) -> Result<Server> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["floor", &cluster.dsn()]);
    start(&mut command)
}

async fn start_service(target: &Path, cluster: &Cluster) -> Result<(Server, Duration, String)> {
    let data = target.join(format!("bench-data-{}", std::process::id()));
    let mut command = Command::new(target.join("release/callboard"));
    command.arg("serve").env("SERVICE_POSTGRES_DSN", cluster.dsn()).env("SERVICE_DATA_DIR", &data);
    command.env("SERVICE_PORT", "0").env("SERVICE_LOG", "warn");
    let began = now();
    let server = start(&mut command)?;
    let ready = began.elapsed();
    let graph = serde_json::json!({
        "format": "graph/1",
        "nodes": [{"name": "echo", "type": "reply", "text": "{{ inputs.message }}", "pieces": "words"}],
        "edges": [{"from": "START", "to": "echo"}, {"from": "echo", "to": "END"}]
    });
    post(&server.address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    post(&server.address, "/api/workflows/bench/versions", &serde_json::json!({"graph": graph}).to_string())
        .await?;
    let published = post(&server.address, "/api/workflows/bench/publish", "{}").await?;
    let id =
        published.pointer("/workflow/id").and_then(|id| id.as_str()).context("no workflow id")?.to_owned();
    Ok((server, ready, id))
}

fn start(command: &mut Command) -> Result<Server> {
    let mut child = command.stdout(Stdio::piped()).spawn().context("start a server")?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let line = lines.next().context("the server ended before it listened")??;
    let Some(address) = line.strip_prefix("listening on http://") else { bail!("unexpected: {line}") };
    Ok(Server { address: address.to_owned(), child })
}

async fn post(address: &str, path: &str, body: &str) -> Result<serde_json::Value> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n");
    let head =
        format!("{head}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(head.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    if !head.starts_with("HTTP/1.1 20") {
        bail!("{path}: {answer}");
    }
    Ok(serde_json::from_str(body)?)
}

fn request(address: &str, workflow: &str) -> String {
    let body = serde_json::json!({
        "type": "threads.create", "workflow_id": workflow,
        "params": {"input": {"content": [{"type": "input_text", "text": TEXT}], "attachments": [],
                             "inference_options": {}}}
    })
    .to_string();
    let head = format!("POST /api/chat HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
fn now() -> Instant {
    Instant::now()
}
