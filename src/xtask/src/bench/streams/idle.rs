//! An open idle stream's cost: with its own turn, and as one more reader of a turn.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::super::process::{cpu_alone, resident_mib};
use super::super::server::{count, now, pause};
use super::{reader, service, sleeper};

/// Concurrent requests while the streams are opened.
const AT_ONCE: usize = 64;
/// Turns whose streams have many readers.
const SHARED: usize = 10;
/// The time until the first pings have been sent and everything is quiet.
const SETTLE: Duration = Duration::from_secs(12);
/// The period in which idle streams' CPU time is counted: one ping per stream.
const WATCHED: Duration = Duration::from_secs(10);

pub(super) async fn measure(target: &Path, streams: usize) -> Result<()> {
    println!("\n{streams} idle streams, each with a waiting turn");
    let running = service(target, sleeper()).await?;
    let (server, workflow) = (&running.server, &running.workflow);
    let pid = server.child.id();
    let begin = |nth| reader::begin(&server.address, workflow, nth);
    // One-time costs fall on these first streams.
    let warm: Vec<_> = stream::iter(0..SHARED).map(begin).buffered(AT_ONCE).try_collect().await?;
    pause(Duration::from_secs(2)).await;
    let before = resident_mib(pid)?;
    let began = now();
    let own: Vec<_> = stream::iter(0..streams).map(begin).buffer_unordered(AT_ONCE).try_collect().await?;
    let opened = began.elapsed();
    pause(SETTLE).await;
    let with_turns = resident_mib(pid)?;
    let used = cpu_alone(pid)?;
    pause(WATCHED).await;
    let cpu = (cpu_alone(pid)? - used) / WATCHED.as_secs_f64();
    println!(
        "  opened in {:.1} s; service {before:.1} -> {with_turns:.1} MiB, {:.1} KiB a stream; CPU while idle {:.1} % of a core",
        opened.as_secs_f64(),
        (with_turns - before) * 1024.0 / count(streams),
        cpu * 100.0
    );
    drop((own, warm, running));

    println!("{streams} idle streams, readers of {SHARED} turns");
    let running = service(target, sleeper()).await?;
    let (server, workflow) = (&running.server, &running.workflow);
    let pid = server.child.id();
    let begin = |nth| reader::begin(&server.address, workflow, nth);
    let turns: Vec<_> = stream::iter(0..SHARED).map(begin).buffered(AT_ONCE).try_collect().await?;
    let paths: Vec<String> = turns.iter().map(|turn| format!("/api/chat/streams/{}", turn.stream)).collect();
    pause(Duration::from_secs(2)).await;
    let before = resident_mib(pid)?;
    let (address, paths) = (&server.address, &paths);
    let join = |nth: usize| async move {
        let path = paths.get(nth % SHARED).context("no turn")?;
        reader::join(address, path, nth, None).await
    };
    let readers: Vec<_> = stream::iter(0..streams).map(join).buffer_unordered(AT_ONCE).try_collect().await?;
    pause(SETTLE).await;
    let after = resident_mib(pid)?;
    println!(
        "  service {before:.1} -> {after:.1} MiB, {:.1} KiB a reader",
        (after - before) * 1024.0 / count(streams)
    );
    drop(readers);
    Ok(())
}
