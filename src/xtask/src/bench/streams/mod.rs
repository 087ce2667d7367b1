//! Measures open streams: the cost of an idle one, and the delay of a piece with many readers.

mod fanout;
pub(super) mod floor;
mod foreign;
mod idle;
mod reader;
mod slow;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};

use super::server::{self, Server, post};
use super::sizes::Sizes;
use crate::cluster::{self, Cluster};

/// The pieces that a running turn writes, one every 50 ms: longer than any measurement lasts.
const PIECES: usize = 6_000;

pub(super) fn run(target: &Path, sizes: Sizes) -> Result<()> {
    let files = raise_files()?;
    let needed = sizes.idle.max(sizes.readers + 2 * sizes.turns) + 200;
    ensure!(
        files >= u64::try_from(needed)?,
        "{needed} connections need as many open files, but the limit is {files}; raise `ulimit -Hn`, or request fewer connections"
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if sizes.idle > 0 {
            idle::measure(target, sizes.idle / 10).await?;
            idle::measure(target, sizes.idle).await?;
        }
        if sizes.readers > 0 {
            fanout::measure(target, sizes).await?;
            slow::memory(target).await?;
        }
        Ok(())
    })
}

/// Measures the delay of pieces on another instance, for one stream and for many.
pub(super) fn run_instances(target: &Path, turns: usize, seconds: u64) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        foreign::measure(target, 1, seconds).await?;
        foreign::measure(target, turns, seconds).await
    })
}

/// Raises the open-file limit to this user's maximum, for this process and its children.
fn raise_files() -> Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// A service with one published workflow.
struct Service {
    server: Server,
    workflow: String,
    // A new cluster: otherwise the service would resume turns of an earlier measurement. Stopped last.
    cluster: Cluster,
}

async fn service(target: &Path, graph: Value) -> Result<Service> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let (server, _) = server::callboard(target, &cluster)?;
    let made = post(&server.address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    let id = made.get("id").and_then(Value::as_str).context("no workflow id")?.to_owned();
    post(&server.address, &format!("/api/workflows/{id}/versions"), &json!({"graph": graph}).to_string())
        .await?;
    post(&server.address, &format!("/api/workflows/{id}/publish"), "{}").await?;
    Ok(Service { server, workflow: id, cluster })
}

/// A workflow that says one word every 50 ms.
fn speaker() -> Value {
    let text = format!("{{% for n in range({PIECES}) %}}word {{% endfor %}}");
    json!({
        "format": "graph/1",
        "nodes": [{"name": "say", "type": "reply", "text": text, "pieces": "words", "pause_ms": 50}],
        "edges": [{"from": "START", "to": "say"}, {"from": "say", "to": "END"}]
    })
}

/// A workflow that waits an hour.
fn sleeper() -> Value {
    json!({
        "format": "graph/1",
        "nodes": [{"name": "wait", "type": "delay", "seconds": 3600}],
        "edges": [{"from": "START", "to": "wait"}, {"from": "wait", "to": "END"}]
    })
}
