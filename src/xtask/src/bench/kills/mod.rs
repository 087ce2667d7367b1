//! A training that is killed at random moments ends as one that is not.
//!
//! The same training is executed twice: once undisturbed, then with `kill -9` at random moments. Every second restart is another
//! instance, which takes the run over when the lease of the killed one has expired.

mod found;
mod models;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls};
use worlds::{Family, RequestOptions, World};

use self::found::Found;
use self::models::SlowModels;
use self::verdict::{Kills, Trial};
use super::server::{self, Server, now, pause};
use crate::cluster::{self, Cluster};

/// Calls of each training.
const BUDGET: u64 = 500;
/// Calls in flight.
const CONCURRENCY: u64 = 4;
/// Every so many lives are killed before they are seen to resume the run.
const EARLY: u64 = 5;
/// The longest of such a life.
const EARLY_LIFE: Duration = Duration::from_millis(500);
/// Between two looks.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long an instance may take to resume a run of another one, and a run to end.
const RESUMED: Duration = Duration::from_secs(60);
const LONGEST: Duration = Duration::from_secs(600);

pub(super) fn run(target: &Path, kills: u64, seed: u64) -> Result<()> {
    ensure!(kills > 0, "0 kills prove nothing; use at least 1");
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    actix_rt::System::new().block_on(measure(target, &cluster, kills, seed))
}

/// A training that was started.
pub(super) struct Started {
    workflow: String,
    run: String,
}

/// Two instances of the service, of which one is alive.
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

async fn measure(target: &Path, cluster: &Cluster, kills: u64, seed: u64) -> Result<()> {
    let models = SlowModels::start()?;
    let folder = target.join(format!("bench-kills-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let instances = Instances { target, cluster, models: models.base_url(), folder };
    let (database, connection) = tokio_postgres::connect(&cluster.dsn(), NoTls).await?;
    tokio::spawn(connection);
    let mut service = instances.start(0)?;
    let began = now();
    let undisturbed = start(&service.address).await?;
    ended(&service.address, &undisturbed).await?;
    let took = began.elapsed();
    println!("undisturbed: {:.1} s", took.as_secs_f64());
    let first = Trial {
        found: Found::read(&service.address, &database, &undisturbed).await?,
        received: models.take(),
    };
    let killed = start(&service.address).await?;
    let mut random = Random(seed);
    // All lives together are about as long as the undisturbed run.
    let life = 2 * took / u32::try_from(kills)?;
    let (mut instance, mut done, mut seen) = (0, 0, 0);
    while done < kills {
        let is_early = done % EARLY == EARLY - 1;
        if !is_early && !resumed(&database, &killed, seen).await? {
            break;
        }
        pause(random.up_to(if is_early { EARLY_LIFE } else { life })).await;
        if status(&service.address, &killed).await? == "succeeded" {
            break;
        }
        seen = last_commit(&database, &killed).await?;
        // SIGKILL.
        drop(service);
        done += 1;
        instance = if done % 2 == 0 { 1 - instance } else { instance };
        service = instances.start(instance)?;
    }
    ended(&service.address, &killed).await?;
    let second =
        Trial { found: Found::read(&service.address, &database, &killed).await?, received: models.take() };
    println!("killed {done} times: {:.1} s in all", began.elapsed().as_secs_f64());
    drop(service);
    let _ = std::fs::remove_dir_all(&instances.folder);
    verdict::judge(target, &first, &second, &Kills { wanted: kills, done, calls: CONCURRENCY })
}

/// Starts the training with a workflow of its own.
async fn start(address: &str) -> Result<Started> {
    let world = World::draw(Family::Pair, 1);
    let settings = json!({
        "name": "gepa", "epochs": 50, "seed": 1, "max_concurrency": CONCURRENCY,
        "budget": {"max_llm_calls": BUDGET},
    });
    let request = world.train_workflow(&RequestOptions { settings, ..RequestOptions::default() });
    let member = |name: &str| request.get(name).cloned().unwrap_or_default();
    let made = server::post(address, "/api/workflows", &json!({"name": "Kills"}).to_string()).await?;
    let workflow = text(&made, "id")?;
    let version = json!({"graph": member("graph_config"), "runnable_config": member("runnable_config")});
    server::post(address, &format!("/api/workflows/{workflow}/versions"), &version.to_string()).await?;
    let body = json!({"training": member("training")}).to_string();
    let run = server::post(address, &format!("/api/workflows/{workflow}/trainer/runs"), &body).await?;
    Ok(Started { workflow, run: text(&run, "id")? })
}

async fn status(address: &str, started: &Started) -> Result<String> {
    let Started { workflow, run } = started;
    let record =
        server::get_with(address, &format!("/api/workflows/{workflow}/trainer/runs/{run}"), "").await?;
    text(&record, "status")
}

/// Waits until the run has succeeded.
async fn ended(address: &str, started: &Started) -> Result<()> {
    let began = now();
    loop {
        match status(address, started).await?.as_str() {
            "queued" | "running" => {}
            "succeeded" => return Ok(()),
            other => anyhow::bail!("the run is {other}"),
        }
        ensure!(began.elapsed() < LONGEST, "the run takes too long");
        pause(INTERVAL).await;
    }
}

/// Waits until the run executes after this commit of its events; `false` if it has ended.
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

/// The number of the first event of the last commit.
async fn last_commit(database: &Client, started: &Started) -> Result<i64> {
    let last = format!(
        "SELECT coalesce(max(first_seq), 0)::int8 FROM stream_events_kept WHERE stream_id = '{}'",
        started.run
    );
    Ok(database.query_one(&last, &[]).await?.get(0))
}

fn text(value: &Value, name: &str) -> Result<String> {
    let found = value.get(name).and_then(Value::as_str);
    found.map(str::to_owned).with_context(|| format!("no '{name}' in {value}"))
}

/// SplitMix64, Steele et al. 2014.
struct Random(u64);

impl Random {
    /// A time of at most `most`.
    fn up_to(&mut self, most: Duration) -> Duration {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        let drawn = (mixed ^ (mixed >> 31)) >> 32;
        most * u32::try_from(drawn % 1_000).unwrap_or_default() / 1_000
    }
}
