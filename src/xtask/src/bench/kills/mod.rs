//! Checks that a training that is killed at random moments ends like an undisturbed one.
//!
//! The same training is executed once undisturbed, then with `kill -9` at random moments. Every second restart uses the
//! other instance, which takes the run over after the killed instance's lease expires. If the training ends before
//! enough kills, the next one starts.

mod found;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::json;
use tokio_postgres::{Client, NoTls};
use worlds::{Family, World};

use self::found::StoredResults;
use self::verdict::{Killed, Trial};
use super::server::{self, Server, now, pause};
use super::simulated::{ModelServer, Started};
use super::splitmix::splitmix;
use crate::cluster::{self, Cluster};

/// Model calls per training.
const BUDGET: u64 = 500;
/// Calls in flight.
const CONCURRENCY: u64 = 4;
/// Duration per call.
const CALL: Duration = Duration::from_millis(40);
/// One life in this many is killed before the run is seen to resume.
const EARLY: u64 = 5;
/// The longest early life.
const EARLY_LIFE: Duration = Duration::from_millis(500);
/// The poll interval.
const INTERVAL: Duration = Duration::from_millis(20);
/// The timeout for an instance to resume another instance's run, and the timeout for a run to end.
const RESUMED: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);
/// The bench fails after this many trainings in a row that ended before a kill.
const MOST_UNDISTURBED: u64 = 20;

pub(super) fn run(target: &Path, kills: u64, seed: u64, optimizer: &str) -> Result<()> {
    ensure!(kills > 0, "0 kills prove nothing; use at least 1");
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    actix_rt::System::new().block_on(measure(target, &cluster, kills, seed, optimizer))
}

/// Two service instances, one of them alive.
struct Instances<'a> {
    target: &'a Path,
    cluster: &'a Cluster,
    models: String,
    folder: PathBuf,
}

impl Instances<'_> {
    fn start(&self, number: u64) -> Result<Server> {
        let data = self.folder.join(number.to_string());
        let data = data.to_str().context("a path that is not UTF-8")?;
        let variables = [("SERVICE_MODEL_BASE_URL", self.models.as_str()), ("SERVICE_DATA_DIR", data)];
        Ok(server::callboard_with(self.target, self.cluster, &variables)?.0)
    }
}

async fn measure(target: &Path, cluster: &Cluster, kills: u64, seed: u64, optimizer: &str) -> Result<()> {
    let models = ModelServer::start_slow(CALL)?;
    let folder = target.join(format!("bench-kills-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let instances = Instances { target, cluster, models: models.base_url(), folder };
    let (database, connection) = tokio_postgres::connect(&cluster.dsn(), NoTls).await?;
    tokio::spawn(connection);
    let service = instances.start(0)?;
    let began = now();
    let undisturbed = start(&service.address, optimizer).await?;
    undisturbed.ended(&service.address, INTERVAL, LONGEST).await?;
    let took = began.elapsed();
    println!("{optimizer} undisturbed: {:.1} s", took.as_secs_f64());
    let first = Trial {
        found: StoredResults::read(&service.address, &database, &undisturbed).await?,
        received: models.take_received(),
    };
    let mut killer = Killer {
        instances: &instances,
        database: &database,
        service,
        instance: 0,
        random: Random { seed: splitmix(seed), drawn: 0 },
        // All lives together last about as long as the undisturbed run.
        life: 2 * took / u32::try_from(kills)?,
        done: 0,
    };
    let (mut killed, mut in_a_row) = (Vec::new(), 0);
    while killer.done < kills && in_a_row < MOST_UNDISTURBED {
        let before = killer.done;
        let started = start(&killer.service.address, optimizer).await?;
        killer.kill(&started, kills).await?;
        started.ended(&killer.service.address, INTERVAL, LONGEST).await?;
        let received = models.take_received();
        let done = killer.done - before;
        if done == 0 {
            in_a_row += 1;
            continue;
        }
        in_a_row = 0;
        let found = StoredResults::read(&killer.service.address, &database, &started).await?;
        killed.push(Killed { trial: Trial { found, received }, kills: done });
    }
    let done = killer.done;
    println!("{} trainings killed {done} times: {:.1} s in all", killed.len(), began.elapsed().as_secs_f64());
    drop(killer);
    let _ = std::fs::remove_dir_all(&instances.folder);
    verdict::judge(target, &first, &killed, kills, CONCURRENCY)
}

/// Starts the training with a new workflow.
async fn start(address: &str, optimizer: &str) -> Result<Started> {
    let settings = json!({
        "name": optimizer, "epochs": 50, "seed": 1, "max_concurrency": CONCURRENCY,
        "budget": {"max_llm_calls": BUDGET},
    });
    Started::start(address, &World::draw(Family::Pair, 1), settings).await
}

/// Kills and restarts the service.
struct Killer<'a> {
    instances: &'a Instances<'a>,
    database: &'a Client,
    /// The live instance, and its number.
    service: Server,
    instance: u64,
    random: Random,
    /// The longest life after a run is seen to execute.
    life: Duration,
    /// Kills so far.
    done: u64,
}

impl Killer<'_> {
    /// Kills until the total reaches `wanted`, or the run has ended. Kills after the end do not count.
    async fn kill(&mut self, started: &Started, wanted: u64) -> Result<()> {
        let mut seen = 0;
        while self.done < wanted {
            let is_early = self.done % EARLY == EARLY - 1;
            if !is_early && !resumed(self.database, started, seen).await? {
                break;
            }
            pause(self.random.up_to(if is_early { EARLY_LIFE } else { self.life })).await;
            if has_ended(self.database, started).await? {
                break;
            }
            seen = last_commit(self.database, started).await?;
            // SIGKILL.
            self.service.child.kill()?;
            self.service.child.wait()?;
            let has_hit = !has_ended(self.database, started).await?;
            if has_hit {
                self.done += 1;
                self.instance = if self.done.is_multiple_of(2) { 1 - self.instance } else { self.instance };
            }
            self.service = self.instances.start(self.instance)?;
            if !has_hit {
                break;
            }
        }
        Ok(())
    }
}

/// Whether the run's end is stored.
async fn has_ended(database: &Client, started: &Started) -> Result<bool> {
    let ended = format!(
        "SELECT coalesce(bool_or(frames LIKE '%\"type\":\"run_completed\"%'), false)
         FROM stream_events_kept WHERE stream_id = '{}'",
        started.run
    );
    Ok(database.query_one(&ended, &[]).await?.get(0))
}

/// Waits until the run executes after this event commit; `false` if it has ended.
async fn resumed(database: &Client, started: &Started, after: i64) -> Result<bool> {
    let run = &started.run;
    let any = format!(
        "SELECT coalesce(bool_or(frames LIKE '%\"type\":\"run_completed\"%'), false),
                coalesce(bool_or(first_seq > {after} AND (frames LIKE '%\"type\":\"training_resumed\"%'
                                                          OR frames LIKE '%\"type\":\"run_started\"%')), false)
         FROM stream_events_kept WHERE stream_id = '{run}'"
    );
    let began = now();
    loop {
        let row = database.query_one(&any, &[]).await?;
        let (has_ended, has_resumed): (bool, bool) = (row.get(0), row.get(1));
        if has_ended || has_resumed {
            return Ok(!has_ended);
        }
        ensure!(began.elapsed() < RESUMED, "the run was not resumed within {RESUMED:?}");
        pause(INTERVAL).await;
    }
}

/// The last commit's first event number.
async fn last_commit(database: &Client, started: &Started) -> Result<i64> {
    let last = format!(
        "SELECT coalesce(max(first_seq), 0)::int8 FROM stream_events_kept WHERE stream_id = '{}'",
        started.run
    );
    Ok(database.query_one(&last, &[]).await?.get(0))
}

/// Deterministic random durations: the same seed gives the same ones.
struct Random {
    seed: u64,
    drawn: u64,
}

impl Random {
    /// A duration of at most `most`.
    fn up_to(&mut self, most: Duration) -> Duration {
        self.drawn += 1;
        let drawn = splitmix(self.seed.wrapping_add(self.drawn)) >> 32;
        most * u32::try_from(drawn % 1_000).unwrap_or_default() / 1_000
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_spread_and_the_same_for_a_seed() {
        let times = |seed: u64| -> Vec<Duration> {
            let mut random = Random { seed: splitmix(seed), drawn: 0 };
            (0..100).map(|_| random.up_to(Duration::from_secs(1))).collect()
        };
        assert_eq!(times(1), times(1));
        assert_ne!(times(1), times(2));
        let mean = times(1).iter().sum::<Duration>() / 100;
        assert!((400..600).contains(&mean.as_millis()), "{mean:?}");
        assert!(times(1).iter().all(|time| *time < Duration::from_secs(1)));
    }
}
