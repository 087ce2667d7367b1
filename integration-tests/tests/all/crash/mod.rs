//! `kill -9` of the real binary at random moments of streaming turns, while an outside process compares acknowledged
//! data with stored and resumed data: nothing lost, nothing repeated, ready again within five seconds.
//!
//! `CALLBOARD_CRASH_KILLS` (30), `CALLBOARD_CRASH_CLIENTS` (8) and `CALLBOARD_CRASH_SEED` set the numbers of kills and
//! clients, and the random seed. The history, the tables and the service's log stay in the target folder,
//! `tmp/crash-*`.
#![allow(clippy::print_stdout, reason = "prints the seed and the figures to the test output")]

mod again;
mod app_runs;
mod effects;
mod interrupted;
mod items;
mod loops;
mod open_files;
mod oracle;
mod pair;
mod questions;
mod records;
mod retry;
mod runs;
pub(crate) mod service;
mod sign_in;
mod streams;
mod tables;
mod workflows;

use std::path::{Path, PathBuf};
use std::time::Duration;

use integration_tests::until;
use kernel::{Random, SeededRandom, SystemRandom};
use oracle::Oracle;
use service::Service;
use store::testing::TestDatabase;
use tables::Tables;

/// Milliseconds from readiness to a kill.
const MOMENTS: std::ops::RangeInclusive<u64> = 50..=2_000;
/// Enough time for each run to store a row, even with other tests in parallel.
const LATE: Duration = Duration::from_secs(5);
/// Maximum seconds from the start of a process to its readiness, with other tests and builds in parallel: 0.4 s is
/// usual, and a start that waits for the killed process's lease would take ten.
const READY: f64 = 9.0;

/// Makes commits as slow as on a real disk, so that kills hit requests before their response. The tests' cluster may be
/// in memory.
const SLOW_DISK: &str = "DO $$ BEGIN
    EXECUTE format('ALTER DATABASE %I SET commit_delay = 8000', current_database());
    EXECUTE format('ALTER DATABASE %I SET commit_siblings = 0', current_database());
END $$";

#[test]
fn the_oracle_finds_every_planted_bug() {
    oracle::self_test();
}

#[tokio::test]
async fn kills_lose_nothing_with_an_external_database() {
    let database = TestDatabase::create().await;
    database.execute(SLOW_DISK).await.unwrap();
    let folder = folder("outside");
    let service = Service::new(&folder, Some(database.dsn()));
    let tables = || Tables::new(database.dsn().to_owned());
    play(service, &folder, number("CALLBOARD_CRASH_KILLS", 30), tables, |_| {}).await;
}

#[tokio::test]
async fn kills_lose_nothing_with_the_embedded_database() {
    let folder = folder("embedded");
    let service = Service::new(&folder, None);
    let data = service.data_dir().to_owned();
    let tables = || Tables::new(service::embedded_dsn(&data).expect("the embedded database runs"));
    // The next process attaches to a running database, and recovers one that died too.
    let with_it = |kill: u64| {
        if kill % 2 == 1 {
            service::kill_postmaster(&data);
        }
    };
    play(service, &folder, number("CALLBOARD_CRASH_KILLS", 5).min(5), tables, with_it).await;
    assert_eq!(service::embedded_dsn(&data), None, "the adopted database outlived a graceful shutdown");
}

/// Chats, kills, and compares. `tables` is called once the database runs; `also` performs the additional part of a
/// kill.
async fn play(
    mut service: Service,
    folder: &Path,
    kills: u64,
    tables: impl Fn() -> Tables,
    also: impl Fn(u64),
) {
    let seed = seed();
    println!("CALLBOARD_CRASH_SEED={seed} ({kills} kills, {})", folder.display());
    let random = SeededRandom::new(seed);
    let mut oracle = Oracle::start(service.address(), folder, number("CALLBOARD_CRASH_CLIENTS", 8), seed);
    oracle.measure_start(true, || service.start());
    let workflows = workflows::create(&service.base()).await;
    oracle.start_clients(&workflows);
    let (mut quickest, mut slowest) = (f64::INFINITY, 0.0_f64);
    let mut snapshot = None;
    let mut moments = KillDelays::default();
    for kill in 0..kills {
        std::thread::sleep(moments.next(&random));
        if kill == kills / 2 {
            oracle.mark("middle");
            snapshot = Some(tables().items().await);
        }
        service.kill();
        also(kill);
        let took = oracle.measure_start(false, || service.start());
        (quickest, slowest) = (quickest.min(took), slowest.max(took));
    }
    println!("{}", oracle.finish());
    let stored = tables().settled().await;
    service.stop();
    oracle::audit(folder, &stored, snapshot.as_deref().unwrap_or("[]"));
    // On a slow machine, even the quickest start is slow.
    let limit = READY.max(10.0 * quickest);
    assert!(slowest <= limit, "ready only after {slowest:.2} s, and once after {quickest:.2} s");
}

/// Kills at random moments while the test's other tasks continue.
fn kill_on(kills: u64, random: &SeededRandom, service: &mut Service, oracle: &mut Oracle) {
    let mut moments = KillDelays::default();
    for _ in 0..kills {
        tokio::task::block_in_place(|| std::thread::sleep(moments.next(random)));
        service.kill();
        tokio::task::block_in_place(|| oracle.measure_start(false, || service.start()));
    }
}

/// Random moments, never two early ones in a row: a run that stores nothing in three lives would fail with
/// `run.crashed`.
#[derive(Default)]
struct KillDelays {
    was_early: bool,
}

impl KillDelays {
    fn next(&mut self, random: &SeededRandom) -> Duration {
        let drawn = random_delay(random);
        let delay = if self.was_early { drawn.max(LATE) } else { drawn };
        self.was_early = delay < LATE;
        delay
    }
}

/// Waits for runs that have survived two kills without progress: after one more, they would fail with `run.crashed`.
pub(crate) async fn wait_for_suspects(database: &TestDatabase) {
    let suspects = "SELECT count(*) FROM run_crashes c JOIN runs r ON r.id = c.run_id WHERE c.ends > 1 AND r.finished_at IS NULL";
    until("every suspect has ended", async || database.scalar(suspects).await == "0").await;
}

fn random_delay(random: &SeededRandom) -> Duration {
    let span = MOMENTS.end() - MOMENTS.start() + 1;
    Duration::from_millis(MOMENTS.start() + random_number(random) % span)
}

pub(crate) fn random_number(random: &dyn Random) -> u64 {
    let mut bytes = [0; 8];
    random.fill(&mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

pub(crate) fn seed() -> u64 {
    number("CALLBOARD_CRASH_SEED", random_number(&SystemRandom::new()) >> 16)
}

pub(crate) fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} must be a number, not {text}")),
        Err(_) => default,
    }
}

/// A new folder for a run's files, so that failures can be investigated.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("crash-{name}"));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}
