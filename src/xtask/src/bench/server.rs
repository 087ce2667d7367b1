//! The measured servers, and helpers for figures.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cluster::Cluster;

/// A measured server.
pub(super) struct Server {
    pub(super) child: Child,
    pub(super) address: String,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a server and waits until it listens.
    pub(super) fn start(command: &mut Command) -> Result<Self> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("start a server")?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let line = lines.next().context("the server ended before it listened")??;
        let Some(address) = line.strip_prefix("listening on http://") else { bail!("unexpected: {line}") };
        Ok(Self { address: address.to_owned(), child })
    }
}

/// Starts the service on this database; also returns the time until it was ready.
pub(super) fn callboard(target: &Path, cluster: &Cluster) -> Result<(Server, Duration)> {
    callboard_with(target, cluster, &[])
}

/// Like [`callboard`], with more variables.
pub(super) fn callboard_with(
    target: &Path,
    cluster: &Cluster,
    variables: &[(&str, &str)],
) -> Result<(Server, Duration)> {
    let data = target.join(format!("bench-data-{}", std::process::id()));
    let mut command = Command::new(target.join("release/callboard"));
    command.arg("serve").env("SERVICE_POSTGRES_DSN", cluster.dsn()).env("SERVICE_DATA_DIR", &data);
    command.env("SERVICE_PORT", "0").env("SERVICE_LOG", "warn");
    // All load comes from one address.
    for limit in ["RATE_LIMIT_IP", "RATE_LIMIT_WORKFLOW", "RATE_LIMIT_SESSION", "MAX_STREAMS"] {
        command.env(format!("SERVICE_CHAT_{limit}"), "0");
    }
    command.envs(variables.iter().copied());
    let began = now();
    let server = Server::start(&mut command)?;
    Ok((server, began.elapsed()))
}

/// Posts JSON and reads the JSON of a successful response.
pub(super) async fn post(address: &str, path: &str, body: &str) -> Result<serde_json::Value> {
    post_with(address, path, "", body).await
}

/// Like [`post`], with more header lines, each with its line ending.
pub(super) async fn post_with(
    address: &str,
    path: &str,
    headers: &str,
    body: &str,
) -> Result<serde_json::Value> {
    let head = format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}");
    let length = body.len();
    let request = format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}");
    answer_to(address, path, &request).await
}

/// Reads the JSON at a path.
pub(super) async fn get_with(address: &str, path: &str, headers: &str) -> Result<serde_json::Value> {
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\r\n");
    answer_to(address, path, &head).await
}

async fn answer_to(address: &str, path: &str, request: &str) -> Result<serde_json::Value> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("no body")?;
    if !head.starts_with("HTTP/1.1 20") {
        bail!("{path}: {answer}");
    }
    Ok(serde_json::from_str(body)?)
}

/// A count as a divisor.
pub(super) fn count(n: usize) -> f64 {
    u32::try_from(n).map_or(f64::NAN, f64::from)
}

/// A percentile in milliseconds.
pub(super) fn percentile(mut times: Vec<Duration>, percent: usize) -> f64 {
    times.sort_unstable();
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(0.0, |time| time.as_secs_f64() * 1e3)
}

/// The machine's time.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// Sleeps on the machine's clock.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the machine's time")]
pub(super) async fn pause(time: Duration) {
    tokio::time::sleep(time).await;
}
