//! Trains the prompts of simulated worlds through the service, and scores what it returns exactly.

mod bootstrap;
mod gates;
mod models;
mod plot;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use worlds::{Demo, Family, Reference, RequestOptions, World};

use self::gates::Scores;
use self::models::ModelServer;
use super::server::{self, now, pause};
use crate::cluster::{self, Cluster};

/// The optimizers that are compared, and those beside them in worlds that only demos teach.
const OPTIMIZERS: [&str; 6] = ["random", "opro", "mipro", "textgrad", "gepa", "auto"];
const OF_DEMOS: [&str; 2] = ["none", "fewshot"];
/// All of them, and the published algorithms.
const SHOWN: [&str; 11] = [
    "random",
    "reference",
    "reference_paired",
    "gepa_published",
    "opro",
    "textgrad",
    "gepa",
    "auto",
    "none",
    "fewshot",
    "mipro",
];
/// Trainings that execute at the same time.
const PARALLEL: usize = 4;
/// Epochs of each, the most that a request may have: more than the budget pays for.
const EPOCHS: u32 = 50;
/// Between two looks at a run.
const INTERVAL: Duration = Duration::from_millis(50);
/// How long one training may take.
const LONGEST: Duration = Duration::from_secs(600);

/// `families`: the names of those that are measured; all if there are none.
pub(super) fn run(target: &Path, budgets: &[u64], worlds: u64, families: &[String]) -> Result<()> {
    let named = |name: &String| Family::parse(name).with_context(|| format!("'{name}' is not a family"));
    let mut families: Vec<Family> = families.iter().map(named).collect::<Result<_>>()?;
    if families.is_empty() {
        families.extend(Family::ALL);
    }
    let binaries = cluster::binaries().context("no PostgreSQL server programs")?;
    let cluster = Cluster::start_on_disk(binaries, &target.join("bench-postgres.log"))?;
    actix_rt::System::new().block_on(async {
        let models = ModelServer::start()?;
        let url = models.base_url();
        let places = PARALLEL.to_string();
        let variables =
            [("SERVICE_MODEL_BASE_URL", url.as_str()), ("SERVICE_TRAINING_MAX_RUNS", places.as_str())];
        let (service, _) = server::callboard_with(target, &cluster, &variables)?;
        let mut failed = Vec::new();
        for budget in budgets {
            let found = measure(target, (&service.address, &models), *budget, (worlds, &families)).await?;
            failed.extend(found.into_iter().map(|line| format!("{budget} calls: {line}")));
        }
        if failed.is_empty() {
            println!("\nall gates passed");
            return Ok(());
        }
        bail!("gates that failed:\n  {}", failed.join("\n  "))
    })
}

/// One training.
#[derive(Debug, Clone, Copy)]
struct Trial {
    family: Family,
    seed: u64,
    optimizer: &'static str,
    budget: u64,
}

/// What a training has found.
struct Found {
    trial: Trial,
    /// The exact score of the prompts at the start, and of those that were returned.
    seed: f64,
    returned: f64,
    calls: u64,
}

/// Prints what trainings of this budget find; returns the gates that failed.
async fn measure(
    target: &Path,
    (address, models): (&str, &ModelServer),
    budget: u64,
    (worlds, families): (u64, &[Family]),
) -> Result<Vec<String>> {
    let seeds = || 0..worlds;
    let trials = families.iter().flat_map(|family| {
        let of_demos: &[&'static str] = if *family == Family::Demo { &OF_DEMOS } else { &[] };
        seeds().flat_map(move |seed| {
            let optimizers = OPTIMIZERS.iter().chain(of_demos);
            optimizers.map(move |optimizer| Trial { family: *family, seed, optimizer, budget })
        })
    });
    let began = now();
    let mut done = stream::iter(trials.map(|trial| train(address, trial))).buffered(PARALLEL);
    let mut scores = Scores::default();
    let (mut calls, mut runs) = (0, 0_u64);
    while let Some(found) = done.next().await {
        let found = found?;
        ensure!(found.calls <= budget, "{:?} made {} calls", found.trial, found.calls);
        (calls, runs) = (calls + found.calls, runs + 1);
        let Trial { family, seed, optimizer, .. } = found.trial;
        scores.add(family, optimizer, seed, (found.seed, found.returned));
    }
    let seconds = began.elapsed().as_secs_f64();
    for family in families {
        for seed in seeds() {
            let world = World::draw(*family, seed);
            for (name, reference) in Reference::ALL {
                let returned = world.true_score(&reference.run(&world, budget, seed).prompts);
                scores.add(*family, name, seed, (world.seed_score(), returned));
            }
        }
    }
    let tally = models.take_tally();
    println!(
        "\n{runs} trainings of {worlds} worlds a family, at most {budget} calls each, in {seconds:.0} s"
    );
    println!("  calls: {calls} counted by the service, {} received by the models", tally.received());
    println!(
        "  canaries of held-out cases at the reflector: {}; calls without the placeholder: {}",
        tally.canaries.len(),
        tally.without_placeholder
    );
    scores.print(&SHOWN);
    let picture = target.join(format!("bench-training-{budget}.svg"));
    std::fs::write(&picture, plot::plot(&scores, &SHOWN))?;
    println!("\nthe same as a picture: {}", picture.display());
    let mut failed = scores.failed();
    if !tally.canaries.is_empty() {
        failed.push("canaries reached the reflector".to_owned());
    }
    if tally.received() != calls {
        failed.push("usage differs from what the models have received".to_owned());
    }
    Ok(failed)
}

/// Trains the prompts of a world with a workflow of its own.
async fn train(address: &str, trial: Trial) -> Result<Found> {
    let world = World::draw(trial.family, trial.seed);
    let settings = json!({
        "name": trial.optimizer, "epochs": EPOCHS, "seed": trial.seed, "max_concurrency": 8,
        "budget": {"max_llm_calls": trial.budget},
    });
    let request = world.train_workflow(&RequestOptions { settings, ..RequestOptions::default() });
    let name = json!({"name": format!("{} {}", world.name(), trial.optimizer)});
    let made = server::post(address, "/api/workflows", &name.to_string()).await?;
    let workflow = text(&made, "id")?;
    let member = |name: &str| request.get(name).cloned().unwrap_or_default();
    let version = json!({"graph": member("graph_config"), "runnable_config": member("runnable_config")});
    server::post(address, &format!("/api/workflows/{workflow}/versions"), &version.to_string()).await?;
    let runs = format!("/api/workflows/{workflow}/trainer/runs");
    let body = json!({"training": member("training")}).to_string();
    let started = server::post(address, &runs, &body).await?;
    let run = text(&started, "id")?;
    let began = now();
    let record = loop {
        let record = server::get_with(address, &format!("{runs}/{run}"), "").await?;
        match text(&record, "status")?.as_str() {
            "queued" | "running" => {}
            "succeeded" => break record,
            _ => bail!("{trial:?}: {record}"),
        }
        ensure!(began.elapsed() < LONGEST, "{trial:?} takes too long: {record}");
        pause(INTERVAL).await;
    };
    let ended = server::get_with(address, &format!("/api/runs/{run}"), "").await?;
    let prompts = ended.pointer("/output/prompts").and_then(Value::as_object).context("no prompts")?;
    let prompts: BTreeMap<String, String> =
        prompts.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
    let demos = ended.pointer("/output/demos").and_then(Value::as_object);
    let demos = demos.into_iter().flatten().map(|(name, demos)| (name.clone(), demos_of(demos))).collect();
    let calls = record.pointer("/usage/llm_calls").and_then(Value::as_u64).context("no usage")?;
    Ok(Found { trial, seed: world.seed_score(), returned: world.true_score_with(&prompts, &demos), calls })
}

/// The demos of a prompt, as a model receives them.
fn demos_of(demos: &Value) -> Vec<Demo> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let demo = |demo: &Value| {
        let (inputs, output) = (demo.get("inputs")?, demo.get("output")?);
        Some(Demo { user: text(inputs.get("user").unwrap_or(inputs)), assistant: text(output) })
    };
    demos.as_array().into_iter().flatten().filter_map(demo).collect()
}

fn text(value: &Value, name: &str) -> Result<String> {
    let found = value.get(name).and_then(Value::as_str);
    found.map(str::to_owned).with_context(|| format!("no '{name}' in {value}"))
}
