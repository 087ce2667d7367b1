//! App-page run starts, compared with plain starts of the same workflow over HTTP. Both send an `Idempotency-Key`; the
//! app's visitors have limits, which are counted but never reached.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::{Client, NoTls};

use super::outcome::{Gates, Outcome};
use super::process::{cpu_alone, cpu_with_children};
use super::server::{self, Server, count, now, pause, post};
use crate::cluster::{self, Cluster};

/// Concurrent starts.
const AT_ONCE: [usize; 2] = [8, 32];
/// Measurements of each kind, alternating.
const ROUNDS: usize = 3;
/// The minimum ratio to the plain rate.
const GATE: f64 = 0.8;
/// Clients so far.
static CLIENTS: AtomicU32 = AtomicU32::new(1);
/// Limits too high to be reached here.
const LIMITS: [(&str, &str); 5] = [
    ("SERVICE_APPS_ANONYMOUS_RUNS_PER_MINUTE", "1000000"),
    ("SERVICE_APPS_ANONYMOUS_RUNS_PER_DAY", "1000000"),
    ("SERVICE_APPS_ANONYMOUS_CONCURRENT", "1000000"),
    ("SERVICE_APPS_RUNS_PER_DAY", "100000000"),
    // Each start comes from a different client address.
    ("SERVICE_TRUSTED_PROXIES", r#"["127.0.0.0/8"]"#),
];

pub(super) fn run(target: &Path, runs: usize) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, runs))
}

async fn measure(target: &Path, cluster: &Cluster, runs: usize) -> Result<()> {
    let (service, _) = server::callboard_with(target, cluster, &LIMITS)?;
    let (database, connection) = tokio_postgres::connect(&cluster.dsn(), NoTls).await?;
    tokio::spawn(connection);
    publish(&service.address, &database).await?;
    let measured = StartMeasurement { service: &service, database: &database, cluster, runs };
    // Warms plans and caches.
    for kind in [StartKind::Plain, StartKind::App] {
        StartMeasurement { runs: runs / 10 + 1, ..measured }.one(kind, 8).await?;
    }
    println!(
        "\n{:<8} {:>4} {:>10} {:>13} {:>9} {:>9}",
        "", "at", "starts/s", "CPU ms/start", "service", "database"
    );
    let mut gates = Gates::default();
    for at in AT_ONCE {
        let (mut plain, mut app) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            plain.push(measured.one(StartKind::Plain, at).await?);
            app.push(measured.one(StartKind::App, at).await?);
        }
        let ratio = median(app) / median(plain);
        let gate = format!("{at} at once: {ratio:.2} of plain starts (at least {GATE})");
        gates.add(Outcome::from_passed(ratio >= GATE), gate);
    }
    gates.print();
    gates.conclude()
}

#[derive(Debug, Clone, Copy)]
enum StartKind {
    Plain,
    App,
}

#[derive(Clone, Copy)]
struct StartMeasurement<'a> {
    service: &'a Server,
    database: &'a Client,
    cluster: &'a Cluster,
    runs: usize,
}

impl StartMeasurement<'_> {
    /// Starts per second; also prints a line of figures.
    async fn one(&self, kind: StartKind, at: usize) -> Result<f64> {
        let (service, postmaster) =
            (self.service.child.id(), self.cluster.pid().context("the database is gone")?);
        let cpu = || -> Result<(f64, f64)> { Ok((cpu_alone(service)?, cpu_with_children(postmaster)?)) };
        let before = cpu()?;
        let began = now();
        starts(&self.service.address, kind, at, self.runs).await?;
        let took = began.elapsed();
        self.all_ended().await?;
        let after = cpu()?;
        let rate = count(self.runs) / took.as_secs_f64();
        let per_start = |seconds: f64| seconds * 1e3 / count(self.runs);
        let (of_service, of_database) = (per_start(after.0 - before.0), per_start(after.1 - before.1));
        println!(
            "{:<8} {at:>4} {rate:>10.0} {:>13.3} {of_service:>9.3} {of_database:>9.3}",
            match kind {
                StartKind::Plain => "plain",
                StartKind::App => "app",
            },
            of_service + of_database
        );
        Ok(rate)
    }

    async fn all_ended(&self) -> Result<()> {
        loop {
            let sql = "SELECT count(*) FROM runs WHERE finished_at IS NULL";
            if self.database.query_one(sql, &[]).await?.get::<_, i64>(0) == 0 {
                return Ok(());
            }
            pause(Duration::from_millis(20)).await;
        }
    }
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Publishes an app with a binding; writes its release directly, as a publish would.
async fn publish(address: &str, database: &Client) -> Result<()> {
    post(address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    let graph = json!({
        "format": "graph/1",
        "nodes": [{"name": "say", "type": "template", "template": "hello {{ inputs.text }}"}],
        "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "END"}],
        "output": {"answer": "{{ results.say.text }}"},
    });
    let version =
        post(address, "/api/workflows/bench/versions", &json!({"graph": graph}).to_string()).await?;
    let app = json!({"alias": "bench", "name": "Bench", "access": "public"}).to_string();
    let app = post(address, "/api/apps", &app).await?;
    let text = |value: &serde_json::Value, name: &str| {
        value.get(name).and_then(serde_json::Value::as_str).map(str::to_owned).context("no such member")
    };
    let (workflow, version, app) = (text(&version, "workflow_id")?, text(&version, "id")?, text(&app, "id")?);
    let bindings = json!({"form": {
        "workflow_id": workflow, "workflow_handle": "bench", "version": 1, "version_id": version,
        "digest": "0".repeat(64), "runnable_config": null, "includes": [], "access_mode": "anonymous",
        "input_schema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        "output_projection": {"fields": ["answer"]}, "visitor_can_read_output": true,
        "limits": {"max_concurrent": 10_000, "per_visitor_per_minute": 1_000_000},
    }});
    let release = format!(
        "INSERT INTO app_releases SELECT a.id, a.id, a.workspace_id, 1, a.id, NULL, 'revision', '{{\"bindings\":{{}},\"collections\":{{}},\"frame_ancestors\":[],\"wasm\":false}}', '{bindings}', '{{}}', false, \
             '[]', false, NULL, now() FROM apps a WHERE a.id = '{app}'; \
         UPDATE apps SET active_release = id WHERE id = '{app}'"
    );
    Ok(database.batch_execute(&release).await?)
}

/// Starts `runs` runs over `connections` connections, each run with its own key.
async fn starts(address: &str, kind: StartKind, connections: usize, runs: usize) -> Result<()> {
    let left = Arc::new(AtomicUsize::new(runs));
    let mut workers = Vec::new();
    for number in 0..connections {
        let (left, address) = (Arc::clone(&left), address.to_owned());
        workers.push(tokio::spawn(async move {
            let mut stream = TcpStream::connect(&address).await?;
            stream.set_nodelay(true)?;
            let mut buffer = Vec::with_capacity(4 * 1024);
            while let Ok(n) =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            {
                let key = format!("{kind:?}-{number}-{n}-{:?}", now());
                let key: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
                start(&mut stream, &request(&address, kind, &key), &mut buffer).await?;
            }
            Ok::<_, anyhow::Error>(())
        }));
    }
    for worker in workers {
        worker.await??;
    }
    Ok(())
}

fn request(address: &str, kind: StartKind, key: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or_default();
    let host = format!("bench.apps.localhost:{port}");
    let (path, host, more, body) = match kind {
        StartKind::Plain => {
            ("/api/workflows/bench/runs", address, String::new(), r#"{"inputs":{"text":"you"}}"#)
        }
        StartKind::App => {
            let [_, a, b, c] = CLIENTS.fetch_add(1, Ordering::Relaxed).to_be_bytes();
            let client = format!("X-Forwarded-For: 10.{a}.{b}.{c}\r\n");
            let more = format!("Origin: http://{host}\r\n{client}");
            ("/__service/workflows/form/runs", host.as_str(), more, r#"{"text":"you"}"#)
        }
    };
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nIdempotency-Key: {key}\r\n{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends one request and reads the complete response.
async fn start(stream: &mut TcpStream, request: &str, buffer: &mut Vec<u8>) -> Result<()> {
    buffer.clear();
    stream.write_all(request.as_bytes()).await?;
    loop {
        if stream.read_buf(buffer).await? == 0 {
            bail!("the server closed the connection");
        }
        let text = String::from_utf8_lossy(buffer);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        ensure!(head.starts_with("HTTP/1.1 202"), "{text}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.context("no length")?.parse()?;
        if body.len() >= length {
            return Ok(());
        }
    }
}
