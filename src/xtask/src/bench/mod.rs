//! `cargo xtask bench …`: builds the measured programs without debug code, then runs the measuring program.
//!
//! Compare CPU milliseconds per turn, and ratios to a floor that ran in the same minute on the same machine; wall time
//! depends mostly on the machine.

#[cfg(feature = "bench")]
mod app_runs;
#[cfg(feature = "bench")]
mod assets;
#[cfg(feature = "bench")]
mod cases;
#[cfg(feature = "bench")]
mod chat;
#[cfg(feature = "bench")]
mod engine;
#[cfg(feature = "bench")]
mod fairness;
#[cfg(feature = "bench")]
mod floor;
#[cfg(feature = "bench")]
mod hosted;
#[cfg(feature = "bench")]
mod kills;
#[cfg(feature = "bench")]
mod load;
#[cfg(feature = "bench")]
mod outcome;
#[cfg(feature = "bench")]
mod process;
#[cfg(feature = "bench")]
mod refusals;
#[cfg(feature = "bench")]
mod sandbox;
#[cfg(feature = "bench")]
mod server;
#[cfg(feature = "bench")]
mod simulated;
mod sizes;
#[cfg(feature = "bench")]
mod splitmix;
#[cfg(feature = "bench")]
mod streams;
#[cfg(feature = "bench")]
mod switches;
#[cfg(feature = "bench")]
mod training;
#[cfg(feature = "bench")]
mod upload;

use std::path::Path;

use anyhow::Result;
use clap::Subcommand;

use crate::run;
use sizes::Sizes;

/// The benchmarks.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Run starts by app pages, compared with plain starts of the same workflow; has a gate.
    AppRuns {
        /// Starts per measurement.
        #[arg(long, default_value_t = 2_000)]
        runs: usize,
    },
    /// Files of a hosted app, compared with nginx and the same files; has gates.
    Assets {
        /// Seconds per measurement.
        #[arg(long, default_value_t = 2)]
        seconds: u64,
    },
    /// Checks of the largest bundles: time and memory.
    Bundles {
        /// Checks per bundle.
        #[arg(long, default_value_t = 100)]
        checks: usize,
    },
    /// Chat turns of 20 pieces at concurrency 1, 8 and 64, compared with a bare handler that stores two items.
    Chat {
        /// Turns per measurement at concurrency 64; fewer at 8 and 1.
        #[arg(long, default_value_t = 8_000)]
        turns: usize,
    },
    /// Durable run steps, compared with bare inserts of the same rows, and checks of a 500-node graph.
    Engine {
        /// Runs of 40 steps per measurement.
        #[arg(long, default_value_t = 200)]
        runs: usize,
    },
    /// Chat turns of one workspace, alone and while runs of another workspace reach their limits.
    Fairness {
        /// Turns per measurement, one at a time.
        #[arg(long, default_value_t = 1_000)]
        turns: usize,
        /// Runs of the other workspace.
        #[arg(long, default_value_t = 4)]
        runs: usize,
    },
    /// Delay of pieces for readers on another instance than the writing one.
    Instances {
        /// Streams written at the same time, 20 pieces a second each; a single stream is also measured.
        #[arg(long, default_value_t = 50)]
        turns: usize,
        /// Seconds per measurement.
        #[arg(long, default_value_t = 15)]
        seconds: u64,
    },
    /// Response times of invalid tokens: whether they distinguish an unknown token from a revoked one.
    Refusals {
        /// Total requests of all kinds.
        #[arg(long, default_value_t = 20_000)]
        requests: usize,
    },
    /// Python and JavaScript calls in a warm worker, compared with a worker that does nothing with the same bytes.
    Sandbox {
        /// Calls per measurement.
        #[arg(long, default_value_t = 2_000)]
        calls: usize,
    },
    /// Open streams: cost while idle, and piece delay with thousands of readers, compared with a bare broadcast.
    Streams(Sizes),
    /// Reads of a hosted app from two instances while releases are published and rolled back and instances killed; has gates.
    Switches {
        /// Total reads of all readers.
        #[arg(long, default_value_t = 10_000)]
        reads: usize,
        /// Seed for the readers' choices and the moments of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Training results in simulated worlds, through the service: true scores by family and optimizer; has gates.
    Training {
        /// Model call budgets per training; everything is measured with each budget.
        #[arg(long, value_delimiter = ',', default_values_t = [500, 4_000])]
        budget: Vec<u64>,
        /// Worlds of each family.
        #[arg(long, default_value_t = 12)]
        worlds: u64,
        /// The families; all by default.
        #[arg(long, value_delimiter = ',')]
        families: Vec<String>,
    },
    /// Evaluation cases without a model: cases per second and memory growth, compared with bare inserts of their rows.
    TrainingCases {
        /// Evaluation cases.
        #[arg(default_value_t = 100_000)]
        cases: usize,
    },
    /// Trainings killed at random moments; after half of the kills another instance resumes them. Each must end like the same undisturbed training.
    TrainingKills {
        /// Total kills of all trainings.
        #[arg(default_value_t = 100)]
        kills: u64,
        /// Seed for the moments of the kills.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Optimizer of the trainings.
        #[arg(long, default_value = "gepa")]
        optimizer: String,
    },
    /// One large upload: memory and rate, compared with a bare handler that inserts the same chunks.
    Upload {
        /// File size in MiB.
        #[arg(long, default_value_t = 1_024)]
        size: usize,
    },
}

/// Builds the service and runs the measuring program.
pub(crate) fn run(root: &Path, bench: &Bench) -> Result<()> {
    let (program, sizes) = match bench {
        Bench::AppRuns { runs } => ("measure-app-runs", vec![runs.to_string()]),
        Bench::Assets { seconds } => ("measure-assets", vec![seconds.to_string()]),
        Bench::Bundles { checks } => {
            // Needs no service.
            let arguments =
                ["run", "--release", "--locked", "-p", "bundle", "--example", "measure-bundles", "--"];
            return run::run(run::cargo(root, &arguments).arg(checks.to_string()));
        }
        Bench::Chat { turns } => ("measure-chat", vec![turns.to_string()]),
        Bench::Engine { runs } => ("measure-engine", vec![runs.to_string()]),
        Bench::Fairness { turns, runs } => ("measure-fairness", vec![turns.to_string(), runs.to_string()]),
        Bench::Instances { turns, seconds } => {
            ("measure-instances", vec![turns.to_string(), seconds.to_string()])
        }
        Bench::Refusals { requests } => ("measure-refusals", vec![requests.to_string()]),
        Bench::Sandbox { calls } => ("measure-sandbox", vec![calls.to_string()]),
        Bench::Streams(sizes) => ("measure-streams", sizes.arguments()),
        Bench::Switches { reads, seed } => ("measure-switches", vec![reads.to_string(), seed.to_string()]),
        Bench::Training { budget, worlds, families } => {
            let budgets: Vec<String> = budget.iter().map(u64::to_string).collect();
            let arguments = [budgets.join(","), worlds.to_string()].into_iter();
            let families = Some(families.join(",")).filter(|families| !families.is_empty());
            test_training(root)?;
            ("measure-training", arguments.chain(families).collect())
        }
        Bench::TrainingCases { cases } => ("measure-training-cases", vec![cases.to_string()]),
        Bench::TrainingKills { kills, seed, optimizer } => {
            ("measure-training-kills", vec![kills.to_string(), seed.to_string(), optimizer.clone()])
        }
        Bench::Upload { size } => ("measure-upload", vec![size.to_string()]),
    };
    run::run(&mut run::cargo(root, &["build", "--release", "--locked", "-p", "callboard"]))?;
    let arguments = ["run", "--release", "--locked", "-p", "xtask", "--features", "bench", "--", program];
    run::run(run::cargo(root, &arguments).args(sizes))
}

/// Runs the tests of the simulated worlds and of all benchmarks, which the complete check leaves out.
fn test_training(root: &Path) -> Result<()> {
    run::run(&mut run::cargo(
        root,
        &["clippy", "--locked", "-p", "worlds", "--all-targets", "--", "-D", "warnings"],
    ))?;
    run::run(&mut run::cargo(root, &["test", "--release", "--locked", "-p", "worlds"]))?;
    // Unoptimized, like the complete check, which has built its dependencies.
    let of_bench = ["test", "--locked", "-p", "xtask", "--features", "bench", "--bin", "xtask"];
    run::run(run::cargo(root, &of_bench).arg("bench::"))
}

/// The measuring programs; they work only with the feature `bench`.
#[derive(Subcommand)]
pub(crate) enum Program {
    /// Measures run starts by apps.
    #[command(hide = true)]
    MeasureAppRuns {
        /// Starts per measurement.
        runs: usize,
    },
    /// Measures files of a hosted app.
    #[command(hide = true)]
    MeasureAssets {
        /// Seconds per measurement.
        seconds: u64,
    },
    /// Measures chat turns.
    #[command(hide = true)]
    MeasureChat {
        /// Turns at concurrency 64.
        turns: usize,
    },
    /// Measures run steps.
    #[command(hide = true)]
    MeasureEngine {
        /// Runs per measurement.
        runs: usize,
    },
    /// Measures chat turns alone and during runs of another workspace.
    #[command(hide = true)]
    MeasureFairness {
        /// Turns per measurement.
        turns: usize,
        /// Runs of the other workspace.
        runs: usize,
    },
    /// Measures the delay of pieces on another instance.
    #[command(hide = true)]
    MeasureInstances {
        /// Streams.
        turns: usize,
        /// Seconds per measurement.
        seconds: u64,
    },
    /// Measures response times of invalid tokens.
    #[command(hide = true)]
    MeasureRefusals {
        /// Total requests of all kinds.
        requests: usize,
    },
    /// Measures sandbox calls.
    #[command(hide = true)]
    MeasureSandbox {
        /// Calls per measurement.
        calls: usize,
    },
    /// Measures open streams.
    #[command(hide = true)]
    MeasureStreams(Sizes),
    /// Reads a hosted app while its releases are switched.
    #[command(hide = true)]
    MeasureSwitches {
        /// Reads.
        reads: usize,
        /// Seed for the readers' choices and the moments of the kills.
        seed: u64,
    },
    /// Measures training results.
    #[command(hide = true)]
    MeasureTraining {
        /// Model call budgets per training, separated by commas.
        budget: String,
        /// Worlds of each family.
        worlds: u64,
        /// The families, separated by commas; all by default.
        families: Option<String>,
    },
    /// Measures evaluation cases.
    #[command(hide = true)]
    MeasureTrainingCases {
        /// Cases.
        cases: usize,
    },
    /// Kills trainings repeatedly.
    #[command(hide = true)]
    MeasureTrainingKills {
        /// Kills.
        kills: u64,
        /// Seed for the moments of the kills.
        seed: u64,
        /// Optimizer of the trainings.
        optimizer: String,
    },
    /// Measures one large upload.
    #[command(hide = true)]
    MeasureUpload {
        /// File size in MiB.
        size: usize,
    },
    /// The floor server of the streams benchmark.
    #[command(hide = true)]
    FloorStreams {
        /// Streams to write.
        topics: usize,
    },
    /// The floor server.
    #[command(hide = true)]
    Floor {
        /// Its database.
        dsn: String,
    },
}

/// Runs a measuring program.
#[cfg(feature = "bench")]
pub(crate) fn program(target: &Path, program: Program) -> Result<()> {
    match program {
        Program::MeasureAppRuns { runs } => app_runs::run(target, runs),
        Program::MeasureAssets { seconds } => assets::run(target, seconds),
        Program::MeasureChat { turns } => chat::run(target, turns),
        Program::MeasureEngine { runs } => engine::run(target, runs),
        Program::MeasureFairness { turns, runs } => fairness::run(target, turns, runs),
        Program::MeasureInstances { turns, seconds } => streams::run_instances(target, turns, seconds),
        Program::MeasureRefusals { requests } => refusals::run(target, requests),
        Program::MeasureSandbox { calls } => sandbox::run(target, calls),
        Program::MeasureStreams(sizes) => streams::run(target, sizes),
        Program::MeasureSwitches { reads, seed } => switches::run(target, reads, seed),
        Program::MeasureTraining { budget, worlds, families } => {
            let budgets: Vec<u64> = budget.split(',').map(str::parse).collect::<Result<_, _>>()?;
            let families = families.iter().flat_map(|families| families.split(',')).map(str::to_owned);
            training::run(target, &budgets, worlds, &families.collect::<Vec<_>>())
        }
        Program::MeasureTrainingCases { cases } => cases::run(target, cases),
        Program::MeasureTrainingKills { kills, seed, optimizer } => {
            kills::run(target, kills, seed, &optimizer)
        }
        Program::MeasureUpload { size } => upload::run(target, size),
        Program::FloorStreams { topics } => streams::floor::run(topics),
        Program::Floor { dsn } => floor::run(&dsn),
    }
}

/// Runs a measuring program.
#[cfg(not(feature = "bench"))]
pub(crate) fn program(_target: &Path, _program: Program) -> Result<()> {
    anyhow::bail!("call `cargo xtask bench …`, which builds this with the feature `bench`")
}
