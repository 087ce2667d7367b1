//! A reader that takes one byte a second: whether it delays others, its cost, and that it loses nothing.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::io::AsyncReadExt;
use tokio::task::JoinHandle;

use super::super::process::resident_mib;
use super::super::server::{count, pause};
use super::{reader, service, speaker};

/// Concurrent slow readers, to measure the cost per reader.
const MANY: usize = 200;
/// By then, a writer with 20 pieces a second is far ahead of them.
const BEHIND: Duration = Duration::from_secs(30);

/// A reader that takes one byte a second.
pub(super) struct Slow {
    reading: JoinHandle<Result<reader::Open>>,
    stop: tokio::sync::watch::Sender<bool>,
}

impl Slow {
    pub(super) async fn start(address: &str, path: &str) -> Result<Self> {
        let mut open = reader::join_narrow(address, path).await?;
        let (stop, mut stopped) = tokio::sync::watch::channel(false);
        let reading = tokio::spawn(async move {
            loop {
                tokio::select! {
                    _ = stopped.changed() => return Ok(open),
                    () = pause(Duration::from_secs(1)) => {
                        let byte = open.socket.read_u8().await.context("the slow reader's connection")?;
                        open.unread.push(byte);
                    }
                }
            }
        });
        Ok(Self { reading, stop })
    }

    /// Reads at full speed to the end of the buffered data, then resumes on a new connection after its last event: no
    /// event is missing or repeated.
    pub(super) async fn finish(self, address: &str, path: &str) -> Result<()> {
        self.stop.send(true)?;
        let mut open = self.reading.await??;
        let had = open.unread.len();
        let mut seen = Vec::new();
        let id = path.rsplit('/').next().unwrap_or_default();
        // Enough to be past the data in sockets and buffers.
        while seen.len() < 200 {
            open.more().await?;
            open.events(|seq| seen.push(seq));
        }
        drop(open);
        let last = *seen.last().context("no event")?;
        let mut back = reader::join(address, path, 0, Some(&format!("{id}.{last}"))).await?;
        let until = seen.len() + 200;
        while seen.len() < until {
            back.events(|seq| seen.push(seq));
            back.more().await?;
        }
        let first = *seen.first().context("no event")?;
        let whole = seen.iter().copied().eq(first..=*seen.last().context("no event")?);
        ensure!(whole, "the slow reader lost or repeated events");
        println!(
            "  the slow reader had {had} bytes, continued, and resumed on another connection: {} events from {first} on, none \
             lost or repeated",
            seen.len()
        );
        Ok(())
    }
}

/// Measures the service memory that slow readers hold.
pub(super) async fn memory(target: &Path) -> Result<()> {
    let running = service(target, speaker()).await?;
    let (server, workflow) = (&running.server, &running.workflow);
    let turn = reader::begin(&server.address, workflow, 0).await?;
    let path = format!("/api/chat/streams/{}", turn.stream);
    pause(Duration::from_secs(3)).await;
    let before = resident_mib(server.child.id())?;
    let (address, path) = (&server.address, &path);
    let join = |_| reader::join_narrow(address, path);
    let slow: Vec<_> = stream::iter(0..MANY).map(join).buffered(16).try_collect().await?;
    pause(BEHIND).await;
    let after = resident_mib(server.child.id())?;
    println!(
        "\n{MANY} readers that stopped reading, {} s late: service {before:.1} -> {after:.1} MiB, {:.1} KiB each",
        BEHIND.as_secs(),
        (after - before) * 1024.0 / count(MANY)
    );
    drop((slow, turn));
    Ok(())
}
