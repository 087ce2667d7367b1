//! Trains simulated worlds' prompts through the service, and scores the returned prompts exactly.

mod bootstrap;
mod gates;
mod plot;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};
use worlds::{Demo, Family, Reference, Tally, World};

use self::gates::Scores;
use super::outcome::{Gates, Outcome};
use super::server::{self, now};
use super::simulated::{ModelServer, Started};
use crate::cluster::{self, Cluster};

/// All optimizers. The last two find nothing in worlds that texts teach: they are used where only demos teach, and
/// where nothing can be gained.
const OPTIMIZERS: [&str; 5] = ["textgrad", "gepa", "auto", "none", "fewshot"];
const WITHOUT_TEXTS: [&str; 2] = ["none", "fewshot"];
/// All optimizers, and the reference algorithms.
const SHOWN: [&str; 11] = [
    "random",
    "reference",
    "reference_train",
    "reference_paired",
    "reference_paired_train",
    "gepa_published",
    "textgrad",
    "gepa",
    "auto",
    "none",
    "fewshot",
];
/// The gates' requirements: worlds per family, and the call budgets.
const LEAST_WORLDS: u64 = 12;
const BUDGETS: [u64; 2] = [500, 4_000];
/// Concurrent trainings.
const PARALLEL: usize = 4;
/// Epochs per training, the most that a request may have: more than the budget pays for.
const EPOCHS: u32 = 50;
/// The poll interval for a run.
const INTERVAL: Duration = Duration::from_millis(50);
/// The timeout for one training.
const LONGEST: Duration = Duration::from_secs(600);

/// `families`: the measured families' names; all if empty.
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
        let mut gates = Gates::default();
        for budget in budgets {
            let bench =
                Bench { target, address: &service.address, models: &models, worlds, families: &families };
            let found = bench.measure(*budget).await?;
            println!();
            found.print();
            gates.extend(&format!("{budget} calls"), found);
        }
        for unmeasured in missing(budgets, worlds) {
            gates.add(Outcome::NotMeasured, unmeasured);
        }
        println!("\nfor killed trainings: `cargo xtask bench training-kills`");
        gates.conclude()
    })
}

/// The gates' requirements that this bench run does not meet.
fn missing(budgets: &[u64], worlds: u64) -> Vec<String> {
    let budgets = BUDGETS.iter().filter(|budget| !budgets.contains(budget));
    let mut missing: Vec<String> = budgets.map(|budget| format!("{budget} calls: all gates")).collect();
    if worlds < LEAST_WORLDS {
        missing.push(format!("all gates need {LEAST_WORLDS} worlds per family; this run used {worlds}"));
    }
    missing
}

/// One training.
#[derive(Debug, Clone, Copy)]
struct Trial {
    family: Family,
    seed: u64,
    optimizer: &'static str,
    budget: u64,
}

/// A training's result.
struct TrialResult {
    trial: Trial,
    /// The exact scores of the initial prompts, and of the returned ones.
    seed: f64,
    returned: f64,
    calls: u64,
    /// Placeholders in the initial prompts that the returned ones lack.
    lost_placeholders: usize,
}

/// The bench's inputs: service, models, worlds and families.
#[derive(Clone, Copy)]
struct Bench<'a> {
    target: &'a Path,
    address: &'a str,
    models: &'a ModelServer,
    worlds: u64,
    families: &'a [Family],
}

/// Counts over all trainings with one budget.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    runs: u64,
    calls: u64,
    over_budget: u64,
    lost_placeholders: usize,
}

impl Bench<'_> {
    /// Measures and prints the trainings with this budget; returns the gates.
    async fn measure(self, budget: u64) -> Result<Gates> {
        let Self { target, models, worlds, families, .. } = self;
        let trials = families.iter().flat_map(|family| {
            (0..worlds).flat_map(move |seed| {
                let used = OPTIMIZERS.into_iter().filter(|optimizer| is_used(*family, optimizer));
                used.map(move |optimizer| Trial { family: *family, seed, optimizer, budget })
            })
        });
        let began = now();
        let mut done = stream::iter(trials.map(|trial| train(self.address, trial))).buffered(PARALLEL);
        let (mut scores, mut counts) = (Scores::default(), Counts::default());
        while let Some(found) = done.next().await {
            let TrialResult { trial, seed: start, returned, calls, lost_placeholders } = found?;
            counts.runs += 1;
            counts.calls += calls;
            counts.lost_placeholders += lost_placeholders;
            if calls > budget {
                counts.over_budget += 1;
                println!("{trial:?} made {calls} calls");
            }
            scores.add(trial.family, trial.optimizer, trial.seed, start, returned);
        }
        let seconds = began.elapsed().as_secs_f64();
        for family in families {
            for seed in 0..worlds {
                let world = World::draw(*family, seed);
                for (name, reference) in Reference::ALL {
                    let returned = world.true_score(&reference.run(&world, budget, seed).prompts);
                    scores.add(*family, name, seed, world.seed_score(), returned);
                }
            }
        }
        println!(
            "\n{} trainings of {worlds} worlds a family, at most {budget} calls each, in {seconds:.0} s",
            counts.runs
        );
        scores.print(&SHOWN);
        scores.print_losses(&SHOWN);
        let picture = target.join(format!("bench-training-{budget}.svg"));
        std::fs::write(&picture, plot::plot(&scores, &SHOWN))?;
        println!("\nthe same results as a chart: {}", picture.display());
        let mut gates = scores.gates(&OPTIMIZERS);
        let has_canaries = families.iter().any(|family| family.sizes().has_splits());
        of_counts(&mut gates, counts, &models.take_tally(), has_canaries);
        Ok(gates)
    }
}

/// The gates that hold in all families.
fn of_counts(gates: &mut Gates, counts: Counts, tally: &Tally, has_canaries: bool) {
    let mut check = |is_measured: bool, is_passed: bool, gate: String| {
        gates.add(if is_measured { Outcome::from_passed(is_passed) } else { Outcome::NotMeasured }, gate);
    };
    let has_run = counts.runs > 0;
    check(
        has_run,
        counts.over_budget == 0,
        format!("trainings over their budget: {} of {}", counts.over_budget, counts.runs),
    );
    check(
        has_run,
        tally.received() == counts.calls,
        format!("calls: {} in usage, {} received by the models", counts.calls, tally.received()),
    );
    check(
        has_canaries && tally.reflect.received > 0,
        tally.canaries.is_empty(),
        format!(
            "canaries of held-out cases at the reflector: {} in {} calls",
            tally.canaries.len(),
            tally.reflect.received
        ),
    );
    check(
        tally.task.received > 0,
        tally.without_placeholder == 0,
        format!(
            "calls whose prompt lost its placeholder: {} of {}",
            tally.without_placeholder, tally.task.received
        ),
    );
    check(
        has_run,
        counts.lost_placeholders == 0,
        format!("placeholders missing in returned prompts: {}", counts.lost_placeholders),
    );
}

/// Whether an optimizer is measured in a family.
fn is_used(family: Family, optimizer: &str) -> bool {
    family == Family::Demo || !family.has_gain() || !WITHOUT_TEXTS.contains(&optimizer)
}

/// Trains a world's prompts.
async fn train(address: &str, trial: Trial) -> Result<TrialResult> {
    let world = World::draw(trial.family, trial.seed);
    let settings = json!({
        "name": trial.optimizer, "epochs": EPOCHS, "seed": trial.seed, "max_concurrency": 8,
        "budget": {"max_llm_calls": trial.budget},
    });
    let what = || format!("{trial:?}");
    let started = Started::start(address, &world, settings).await.with_context(what)?;
    let record = started.ended(address, INTERVAL, LONGEST).await.with_context(what)?;
    let ended = server::get_with(address, &format!("/api/runs/{}", started.run), "").await?;
    let prompts = ended.pointer("/output/prompts").and_then(Value::as_object).context("no prompts")?;
    let prompts: BTreeMap<String, String> =
        prompts.iter().filter_map(|(name, text)| Some((name.clone(), text.as_str()?.to_owned()))).collect();
    let demos = ended.pointer("/output/demos").and_then(Value::as_object);
    let demos = demos.into_iter().flatten().map(|(name, demos)| (name.clone(), demos_of(demos))).collect();
    let calls = record.pointer("/usage/llm_calls").and_then(Value::as_u64).context("no usage")?;
    Ok(TrialResult {
        trial,
        seed: world.seed_score(),
        returned: world.true_score_with(&prompts, &demos),
        calls,
        lost_placeholders: lost_placeholders(&world.seed_prompts(), &prompts),
    })
}

/// Number of placeholders in these prompts that the other prompts lack.
fn lost_placeholders(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> usize {
    let lost = |(name, text): (&String, &String)| {
        let kept = placeholders(after.get(name).map(String::as_str).unwrap_or_default());
        placeholders(text).difference(&kept).count()
    };
    before.iter().map(lost).sum()
}

/// The placeholder names between `{{` and `}}` in a text.
fn placeholders(text: &str) -> BTreeSet<&str> {
    let parts = text.split("{{").skip(1);
    parts.filter_map(|part| Some(part.split_once("}}")?.0.trim())).collect()
}

/// A prompt's demos, as a model receives them.
fn demos_of(demos: &Value) -> Vec<Demo> {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let demo = |demo: &Value| {
        let (inputs, output) = (demo.get("inputs")?, demo.get("output")?);
        Some(Demo { user: text(inputs.get("user").unwrap_or(inputs)), assistant: text(output) })
    };
    demos.as_array().into_iter().flatten().filter_map(demo).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_and_fewshot_are_measured_where_nothing_can_be_gained() {
        for family in Family::ALL {
            let used = OPTIMIZERS.iter().filter(|optimizer| is_used(family, optimizer)).count();
            let is_all = matches!(family, Family::Demo | Family::NullOpt | Family::NullFlat);
            assert_eq!(used == OPTIMIZERS.len(), is_all, "{family:?}");
        }
        assert!(
            OPTIMIZERS
                .iter()
                .chain(Reference::ALL.iter().map(|(name, _)| name))
                .all(|name| SHOWN.contains(name))
        );
    }

    #[test]
    fn a_small_run_does_not_measure_all() {
        assert_eq!(missing(&BUDGETS, LEAST_WORLDS), Vec::<String>::new());
        assert_eq!((missing(&[500], 12).len(), missing(&[500, 4_000], 2).len()), (1, 1));
    }

    #[test]
    fn a_lost_placeholder_is_counted() {
        let prompts = |text: &str| BTreeMap::from([("answer".to_owned(), text.to_owned())]);
        let before = prompts("For {{ inputs.desk }}, {{ inputs.day }}.");
        assert_eq!(lost_placeholders(&before, &prompts("{{inputs.day}} at {{ inputs.desk }}")), 0);
        assert_eq!(lost_placeholders(&before, &prompts("For {{ inputs.desk }}, {{ inputs.day")), 1);
        assert_eq!(lost_placeholders(&before, &BTreeMap::new()), 2);
    }

    #[test]
    fn a_lost_placeholder_a_canary_and_a_call_too_many_fail() {
        let outcomes = |counts: Counts, change: &dyn Fn(&mut Tally)| {
            let mut tally = Tally::default();
            (tally.task.received, tally.reflect.received) = (4, 1);
            change(&mut tally);
            let mut gates = Gates::default();
            of_counts(&mut gates, counts, &tally, true);
            [Outcome::Passed, Outcome::Failed, Outcome::NotMeasured].map(|outcome| gates.count(outcome))
        };
        let good = Counts { runs: 1, calls: 5, ..Counts::default() };
        assert_eq!(outcomes(good, &|_| {}), [5, 0, 0]);
        assert_eq!(outcomes(good, &|tally| tally.without_placeholder = 1), [4, 1, 0]);
        assert_eq!(outcomes(good, &|tally| tally.canaries.push("one-1".to_owned())), [4, 1, 0]);
        assert_eq!(outcomes(good, &|tally| tally.task.received = 3), [4, 1, 0]);
        assert_eq!(outcomes(Counts { lost_placeholders: 1, ..good }, &|_| {}), [4, 1, 0]);
        assert_eq!(outcomes(Counts { over_budget: 1, ..good }, &|_| {}), [4, 1, 0]);
        assert_eq!(outcomes(good, &|tally| *tally = Tally::default()), [2, 1, 2]);
    }
}
