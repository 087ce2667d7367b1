//! Measures one large upload: its memory and its rate, compared with a bare handler that inserts the same chunks.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::process::{cpu_alone, resident_mib};
use super::server::{self, Server, now, pause, post};
use crate::cluster::{self, Cluster};

/// Bytes per write.
const BLOCK: usize = 256 << 10;
/// The interval between two memory readings.
const SAMPLE: Duration = Duration::from_millis(20);
/// Maximum memory growth during an upload, MiB.
const AIM_MIB: f64 = 64.0;

pub(super) fn run(target: &Path, mebibytes: usize) -> Result<()> {
    ensure!(mebibytes > 0, "nothing to upload");
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure(target, &cluster, mebibytes))
}

/// One upload's figures.
struct UploadFigures {
    seconds: f64,
    cpu: f64,
    before_mib: f64,
    peak_mib: f64,
}

async fn measure(target: &Path, cluster: &Cluster, mebibytes: usize) -> Result<()> {
    let variables = [
        ("SERVICE_CHAT_UPLOAD_MAX_BYTES", "0"),
        ("SERVICE_CHAT_UPLOAD_DAILY_BYTES", "0"),
        ("SERVICE_WORKSPACE_STORAGE_BYTES", "0"),
    ];
    let (service, _) = server::callboard_with(target, cluster, &variables)?;
    let made = post(&service.address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    let workflow = made.get("id").and_then(Value::as_str).context("no workflow id")?.to_owned();
    let graph = r#"{"graph":{"format":"graph/1","nodes":[{"name":"say","type":"reply","text":"ok"}],
        "edges":[{"from":"START","to":"say"},{"from":"say","to":"END"}]}}"#;
    post(&service.address, &format!("/api/workflows/{workflow}/versions"), graph).await?;
    post(&service.address, &format!("/api/workflows/{workflow}/publish"), r#"{"require_login":false}"#)
        .await?;
    let path = format!("/api/chat/upload?workflow_id={workflow}");
    let floor = Server::start(Command::new(std::env::current_exe()?).arg("floor").arg(cluster.dsn()))?;
    // Warm-up uploads take the one-time costs.
    upload(&service, &path, 8, 0).await?;
    upload(&floor, "/upload", 8, 0).await?;
    let before = upload(&floor, "/upload", mebibytes, 1).await?;
    let ours = upload(&service, &path, mebibytes, 2).await?;
    let after = upload(&floor, "/upload", mebibytes, 3).await?;
    let size = server::count(mebibytes);
    println!("\n{mebibytes} MiB of text in one request");
    for (name, figures) in [("floor", &before), ("callboard", &ours), ("floor", &after)] {
        let UploadFigures { seconds, cpu, before_mib, peak_mib } = figures;
        println!(
            "  {name:<10} {:>7.1} MiB/s, CPU {:.2} s; memory {before_mib:.1} -> {peak_mib:.1} MiB, {:.1} more",
            size / seconds,
            cpu,
            peak_mib - before_mib
        );
    }
    println!("  rate: {:.2} of the floor", (before.seconds + after.seconds) / 2.0 / ours.seconds);
    println!("  memory: {:.1} MiB, aim {AIM_MIB}", ours.peak_mib - ours.before_mib);
    Ok(())
}

/// Uploads a file and samples the server's memory meanwhile. `seed` makes files differ.
async fn upload(server: &Server, path: &str, mebibytes: usize, seed: usize) -> Result<UploadFigures> {
    let pid = server.child.id();
    let (before_mib, used, began) = (resident_mib(pid)?, cpu_alone(pid)?, now());
    let mut sending = std::pin::pin!(send(&server.address, path, mebibytes, seed));
    let mut peak_mib = before_mib;
    loop {
        tokio::select! {
            sent = &mut sending => break sent?,
            () = pause(SAMPLE) => peak_mib = resident_mib(pid)?.max(peak_mib),
        }
    }
    Ok(UploadFigures {
        seconds: began.elapsed().as_secs_f64(),
        cpu: cpu_alone(pid)? - used,
        before_mib,
        peak_mib,
    })
}

/// Sends a form with one text file.
async fn send(address: &str, path: &str, mebibytes: usize, seed: usize) -> Result<()> {
    let head = "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"large.txt\"\r\n\r\n";
    let tail = "\r\n--b--\r\n";
    let length = head.len() + tail.len() + (mebibytes << 20);
    let mut stream = tokio::net::TcpStream::connect(address).await?;
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\
         Content-Type: multipart/form-data; boundary=b\r\n\r\n{head}"
    );
    stream.write_all(request.as_bytes()).await?;
    for nth in 0..(mebibytes << 20) / BLOCK {
        // Each block differs, also from those of other files.
        let line = format!("{seed} {nth} of a long text without a word of sense\n");
        let mut block = line.repeat(BLOCK / line.len() + 1);
        block.truncate(BLOCK);
        stream.write_all(block.as_bytes()).await?;
    }
    stream.write_all(tail.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    if answer.starts_with("HTTP/1.1 200") { Ok(()) } else { bail!("{path}: {answer}") }
}
