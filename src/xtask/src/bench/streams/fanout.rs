//! The delay between a stream's first reader and the others for the same piece, compared with the floor.

use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt, TryStreamExt};

use super::super::process::{cpu_alone, cpu_with_children, resident_mib};
use super::super::server::{Server, count, now, pause, percentile};
use super::super::sizes::Sizes;
use super::{PIECES, reader, service, slow, speaker};

const AT_ONCE: usize = 64;
/// The time between the last reader's connection and the measurement.
const WARM_UP: Duration = Duration::from_secs(3);

/// One measurement's figures.
struct FanoutFigures {
    lag: Vec<Duration>,
    pieces: f64,
    wanted: f64,
    server_cpu: f64,
    database_cpu: f64,
    load_cpu: f64,
}

pub(super) async fn measure(target: &Path, sizes: Sizes) -> Result<()> {
    let Sizes { readers, turns, seconds, .. } = sizes;
    println!(
        "\n{readers} readers on {turns} streams of 20 pieces a second, {seconds} s each; lag: time after the first \
         reader of the same stream received the piece"
    );
    println!(
        "{:<26} {:>8} {:>8} {:>8} {:>8}   {:>9} {:>9} {:>7} {:>7} {:>7}",
        "", "p50 ms", "p90", "p99", "max", "pieces/s", "due", "server", "db", "load"
    );
    floor(sizes).await?;
    let running = service(target, speaker()).await?;
    let (server, workflow) = (&running.server, &running.workflow);
    let postmaster = running.cluster.pid().context("the database is gone")?;
    let begin = |nth| reader::begin(&server.address, workflow, nth);
    let begun: Vec<_> = stream::iter(0..turns).map(begin).buffered(AT_ONCE).try_collect().await?;
    let paths: Vec<String> = begun.iter().map(|turn| format!("/api/chat/streams/{}", turn.stream)).collect();
    let before = resident_mib(server.child.id())?;
    let readers = join(&server.address, &paths, sizes.readers).await?;
    drop(begun);
    let crowd = Crowd::watch(readers, turns);
    pause(WARM_UP).await;
    one("callboard", &crowd, sizes, server.child.id(), Some(postmaster)).await?.print("callboard");
    let first = paths.first().context("no turn")?;
    let slow = slow::Slow::start(&server.address, first).await?;
    one("with a slow reader", &crowd, sizes, server.child.id(), Some(postmaster))
        .await?
        .print("with a slow reader");
    let after = resident_mib(server.child.id())?;
    println!(
        "  service {before:.1} -> {after:.1} MiB with all readers, {:.1} KiB a reader",
        (after - before) * 1024.0 / count(sizes.readers)
    );
    slow.finish(&server.address, first).await?;
    drop((crowd, running));
    floor(sizes).await
}

async fn floor(sizes: Sizes) -> Result<()> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["floor-streams", &sizes.turns.to_string()]);
    let server = Server::start(&mut command)?;
    let paths: Vec<String> = (0..sizes.turns).map(|n| format!("/streams/{n}")).collect();
    let crowd = Crowd::watch(join(&server.address, &paths, sizes.readers).await?, sizes.turns);
    pause(WARM_UP).await;
    one("floor", &crowd, sizes, server.child.id(), None).await?.print("floor");
    Ok(())
}

async fn join(address: &str, paths: &[String], readers: usize) -> Result<Vec<reader::Open>> {
    let join = |nth: usize| async move {
        let path = paths.get(nth % paths.len()).context("no turn")?;
        reader::join(address, path, nth, None).await
    };
    stream::iter(0..readers).map(join).buffered(AT_ONCE).try_collect().await
}

/// Active readers; each notes the time when it receives an event of its stream.
struct Crowd {
    /// Per stream: when the first reader had each event, and each reader's lag after that.
    streams: Vec<Arc<Mutex<StreamLags>>>,
    tasks: Vec<tokio::task::JoinHandle<()>>,
}

#[derive(Default)]
struct StreamLags {
    /// Indexed by sequence number.
    first: Vec<Option<Instant>>,
    /// Whether a measurement is running; lags are counted only then.
    measuring: bool,
    lag: Vec<Duration>,
}

impl Crowd {
    fn watch(readers: Vec<reader::Open>, turns: usize) -> Self {
        let streams: Vec<_> = (0..turns).map(|_| Arc::new(Mutex::new(StreamLags::default()))).collect();
        let mut tasks = Vec::with_capacity(readers.len());
        for (mut reader, seen) in readers.into_iter().zip(streams.iter().cycle().cloned()) {
            tasks.push(tokio::spawn(async move {
                loop {
                    let at = now();
                    reader.events(|seq| note(&seen, seq, at));
                    if reader.more().await.is_err() {
                        return;
                    }
                }
            }));
        }
        Self { streams, tasks }
    }
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.tasks.iter().for_each(tokio::task::JoinHandle::abort);
    }
}

fn note(seen: &Mutex<StreamLags>, seq: u64, at: Instant) {
    let Ok(seq) = usize::try_from(seq) else { return };
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    if seq >= PIECES * 2 {
        return;
    }
    if seen.first.len() <= seq {
        seen.first.resize(seq + 1, None);
    }
    let Some(place) = seen.first.get_mut(seq) else { return };
    let first = *place.get_or_insert(at);
    if seen.measuring {
        seen.lag.push(at.saturating_duration_since(first));
    }
}

async fn one(
    name: &str,
    crowd: &Crowd,
    sizes: Sizes,
    server: u32,
    postmaster: Option<u32>,
) -> Result<FanoutFigures> {
    let set = |measuring: bool| {
        let take = |seen: &Arc<Mutex<StreamLags>>| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.measuring = measuring;
            std::mem::take(&mut seen.lag)
        };
        crowd.streams.iter().flat_map(take).collect::<Vec<_>>()
    };
    let cpu = || -> Result<[f64; 3]> {
        let database = postmaster.map(cpu_with_children).transpose()?.unwrap_or(0.0);
        Ok([cpu_alone(server)?, database, cpu_alone(std::process::id())?])
    };
    let began = (now(), cpu()?);
    set(true);
    pause(Duration::from_secs(sizes.seconds)).await;
    let lag = set(false);
    let (took, ended) = (began.0.elapsed().as_secs_f64(), cpu()?);
    let gone = crowd.tasks.iter().filter(|task| task.is_finished()).count();
    if gone > 0 {
        println!("{name}: {gone} readers lost their connection");
    }
    let [server_cpu, database_cpu, load_cpu] =
        [0, 1, 2].map(|n: usize| (ended.get(n).unwrap_or(&0.0) - began.1.get(n).unwrap_or(&0.0)) / took);
    let wanted = count(sizes.readers) * 20.0;
    Ok(FanoutFigures { pieces: count(lag.len()) / took, lag, wanted, server_cpu, database_cpu, load_cpu })
}

impl FanoutFigures {
    fn print(self, name: &str) {
        let [p50, p90, p99, max] = [50, 90, 99, 100].map(|p| percentile(self.lag.clone(), p));
        println!(
            "{name:<26} {p50:>8.2} {p90:>8.2} {p99:>8.2} {max:>8.1}   {:>9.0} {:>9.0} {:>6.0}% {:>6.0}% {:>6.0}%",
            self.pieces,
            self.wanted,
            self.server_cpu * 100.0,
            self.database_cpu * 100.0,
            self.load_cpu * 100.0
        );
    }
}
