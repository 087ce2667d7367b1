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

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// Starts of runs by pages of an app, beside plain starts of the same workflow; the gate that they must pass.
    AppRuns {
        /// Starts for each measurement.
        #[arg(long, default_value_t = 2_000)]
        runs: usize,
    },
    /// Files of a hosted app, beside nginx with the same files; the gates that they must pass.
    Assets {
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 2)]
        seconds: u64,
    },
    /// Checks of the largest bundles: their times, and how much memory they take.
    Bundles {
        /// Checks of each bundle.
        #[arg(long, default_value_t = 100)]
        checks: usize,
    },
    /// Chat turns of 20 pieces at concurrency 1, 8 and 64, beside a bare handler that stores two items.
    Chat {
        /// Turns for each measurement at concurrency 64; fewer at 8 and 1.
        #[arg(long, default_value_t = 8_000)]
        turns: usize,
    },
    /// Durable steps of runs, beside bare inserts of the same rows; checking a graph of 500 nodes.
    Engine {
        /// Runs of 40 steps for each measurement.
        #[arg(long, default_value_t = 200)]
        runs: usize,
    },
    /// Chat turns of one workspace alone, and while runs of another workspace do as much as they may.
    Fairness {
        /// Turns for each measurement, one at a time.
        #[arg(long, default_value_t = 1_000)]
        turns: usize,
        /// Runs of the other workspace.
        #[arg(long, default_value_t = 4)]
        runs: usize,
    },
    /// How late pieces are for readers on another instance than the one that writes them.
    Instances {
        /// Streams that are written at the same time, 20 pieces a second each; one alone is measured too.
        #[arg(long, default_value_t = 50)]
        turns: usize,
        /// Seconds of each measurement.
        #[arg(long, default_value_t = 15)]
        seconds: u64,
    },
    /// How long bad tokens are judged: whether the time tells an unknown token from one that was revoked.
    Refusals {
        /// Requests, of all kinds together.
        #[arg(long, default_value_t = 20_000)]
        requests: usize,
    },
    /// Calls of Python and JavaScript in a warm worker, beside one that does nothing with the same bytes.
    Sandbox {
        /// Calls for each measurement.
        #[arg(long, default_value_t = 2_000)]
        calls: usize,
    },
    /// Open streams: what idle ones cost, and how late a piece is when thousands read, beside a bare broadcast.
    Streams(Sizes),
    /// Reads of a hosted app from two instances while releases are published and rolled back and instances killed; the gates that they must pass.
    Switches {
        /// Reads, of all readers together.
        #[arg(long, default_value_t = 10_000)]
        reads: usize,
        /// Chooses the moments.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// What trainings find in simulated worlds, through the service: true scores by family and optimizer, and the gates that they must pass.
    Training {
        /// Calls of models that each training may make; all is measured with each of these numbers.
        #[arg(long, value_delimiter = ',', default_values_t = [500, 4_000])]
        budget: Vec<u64>,
        /// Worlds of each family.
        #[arg(long, default_value_t = 12)]
        worlds: u64,
        /// The families; all unless given.
        #[arg(long, value_delimiter = ',')]
        families: Vec<String>,
    },
    /// Cases of an evaluation without a model: how many a second, and whether memory grows, beside bare inserts of their rows.
    TrainingCases {
        /// Cases of the evaluation.
        #[arg(default_value_t = 100_000)]
        cases: usize,
    },
    /// Trainings that are killed at random moments, half of the time taken over by another instance: each must end as the same training undisturbed.
    TrainingKills {
        /// Kills, of all trainings together.
        #[arg(default_value_t = 100)]
        kills: u64,
        /// Chooses the moments.
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The optimizer of the training.
        #[arg(long, default_value = "gepa")]
        optimizer: String,
    },
    /// One large upload: its memory and its rate, beside a bare handler that inserts the same chunks.
    Upload {
        /// MiB of the file.
        #[arg(long, default_value_t = 1_024)]
        size: usize,
    },
}

/// Builds and measures.
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

/// The programs that measure; only there with the feature.
#[derive(Subcommand)]
pub(crate) enum Program {
    /// Measures starts of apps' runs.
    #[command(hide = true)]
    MeasureAppRuns {
        /// Starts for each measurement.
        runs: usize,
    },
    /// Measures files of a hosted app.
    #[command(hide = true)]
    MeasureAssets {
        /// Seconds of each measurement.
        seconds: u64,
    },
    /// Measures chat turns.
    #[command(hide = true)]
    MeasureChat {
        /// Turns at concurrency 64.
        turns: usize,
    },
    /// Measures the steps of runs.
    #[command(hide = true)]
    MeasureEngine {
        /// Runs for each measurement.
        runs: usize,
    },
    /// Measures chat turns beside runs of another workspace.
    #[command(hide = true)]
    MeasureFairness {
        /// Turns for each measurement.
        turns: usize,
        /// Runs of the other workspace.
        runs: usize,
    },
    /// Measures how late pieces are on another instance.
    #[command(hide = true)]
    MeasureInstances {
        /// Streams.
        turns: usize,
        /// Seconds of each measurement.
        seconds: u64,
    },
    /// Measures how long bad tokens are judged.
    #[command(hide = true)]
    MeasureRefusals {
        /// Requests of all kinds.
        requests: usize,
    },
    /// Measures calls of code.
    #[command(hide = true)]
    MeasureSandbox {
        /// Calls for each measurement.
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
        /// Chooses the moments.
        seed: u64,
    },
    /// Measures what trainings find.
    #[command(hide = true)]
    MeasureTraining {
        /// Calls of each training; several numbers with commas.
        budget: String,
        /// Worlds of each family.
        worlds: u64,
        /// The families, with commas; all unless given.
        families: Option<String>,
    },
    /// Measures cases of an evaluation.
    #[command(hide = true)]
    MeasureTrainingCases {
        /// Cases.
        cases: usize,
    },
    /// Kills a training again and again.
    #[command(hide = true)]
    MeasureTrainingKills {
        /// Kills.
        kills: u64,
        /// Chooses the moments.
        seed: u64,
        /// The optimizer of the training.
        optimizer: String,
    },
    /// Measures one large upload.
    #[command(hide = true)]
    MeasureUpload {
        /// MiB of the file.
        size: usize,
    },
    /// The server of the streams' floor.
    #[command(hide = true)]
    FloorStreams {
        /// Streams that are written.
        topics: usize,
    },
    /// The floor's server.
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
