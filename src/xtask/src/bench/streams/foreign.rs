//! A piece's delay for a reader on another instance, compared with a second reader on the writing instance.

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::super::server::{self, count, now, pause, percentile, post};
use super::reader::{self, Open};
use super::speaker;
use crate::cluster::{self, Cluster};

/// The time until both instances know each other, and the readers are announced.
const SETTLE: Duration = Duration::from_secs(8);

type ArrivalTimes = HashMap<u64, Instant>;

/// Writes `turns` streams on one instance, 20 pieces a second each, and reads each of them there twice and once
/// elsewhere.
pub(super) async fn measure(target: &Path, turns: usize, seconds: u64) -> Result<()> {
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    let (writer, _) = server::callboard(target, &cluster)?;
    let data = target.join(format!("bench-data-{}-2", std::process::id()));
    let data = data.to_str().context("a path that is not UTF-8")?;
    let (other, _) = server::callboard_with(target, &cluster, &[("SERVICE_DATA_DIR", data)])?;
    let made = post(&writer.address, "/api/workflows", r#"{"name":"Bench"}"#).await?;
    let workflow = made.get("id").and_then(Value::as_str).context("no workflow id")?;
    let version = json!({"graph": speaker()}).to_string();
    post(&writer.address, &format!("/api/workflows/{workflow}/versions"), &version).await?;
    post(&writer.address, &format!("/api/workflows/{workflow}/publish"), "{}").await?;
    pause(SETTLE).await;
    let mut readers = Vec::with_capacity(turns);
    for nth in 0..turns {
        let first = reader::begin(&writer.address, workflow, nth).await?;
        let path = format!("/api/chat/streams/{}", first.stream);
        let second = reader::join(&writer.address, &path, nth, None).await?;
        let foreign = reader::join(&other.address, &path, nth, None).await?;
        readers.push([first, second, foreign]);
    }
    pause(SETTLE).await;
    let time = Duration::from_secs(seconds);
    let reading: Vec<[JoinHandle<Result<ArrivalTimes>>; 3]> =
        readers.into_iter().map(|three| three.map(|open| tokio::spawn(read(open, time)))).collect();
    let (mut here, mut there) = (Vec::new(), Vec::new());
    for [first, second, foreign] in reading {
        let (first, second, foreign) = (first.await??, second.await??, foreign.await??);
        here.extend(late(&first, &second));
        there.extend(late(&first, &foreign));
    }
    ensure!(there.len() > turns, "the other instance sent only {} pieces", there.len());
    println!(
        "\n{turns} streams, {:.0} pieces read on both instances; delay after the first reader, ms (p50 p95 p99)",
        count(there.len())
    );
    for (name, times) in [("second reader, same instance", here), ("reader on another instance", there)] {
        let of = |percent| percentile(times.clone(), percent);
        println!("  {name:<30} {:.1} {:.1} {:.1}", of(50), of(95), of(99));
    }
    Ok(())
}

/// Each event's arrival time during `time`. Earlier events do not count.
async fn read(mut open: Open, time: Duration) -> Result<ArrivalTimes> {
    let mut seen = ArrivalTimes::new();
    let end = now() + time;
    open.events(|_| {});
    let mut first = true;
    while now() < end {
        open.more().await?;
        let at = now();
        open.events(|seq| {
            if !first {
                seen.insert(seq, at);
            }
        });
        first = false;
    }
    Ok(seen)
}

fn late(first: &ArrivalTimes, other: &ArrivalTimes) -> Vec<Duration> {
    let both = other.iter().filter_map(|(seq, at)| Some((*at, first.get(seq)?)));
    both.map(|(at, first)| at.saturating_duration_since(*first)).collect()
}
