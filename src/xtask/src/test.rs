//! `cargo xtask test`: the whole check, stage by stage.

use std::env;
use std::num::NonZero;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use cargo_metadata::Metadata;
use clap::{Args, ValueEnum};

use crate::cluster::{self, Cluster};
use crate::{layers, needs, run};

/// The variable with nextest's number of concurrent tests; an argument overrides it.
const THREADS: &str = "NEXTEST_TEST_THREADS";
/// The maximum number of tests at the same time, unless there are more cores.
const MAX_WAITING_THREADS: usize = 16;

/// Options of `cargo xtask test`.
#[derive(Args)]
pub(crate) struct TestOptions {
    /// Run only this stage (`tests` also runs `needs` and `build`).
    #[arg(long, value_enum)]
    pub(crate) only: Option<Stage>,
    /// Arguments for `cargo nextest run`; with any, formatting and lints are skipped.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "NEXTEST ARGS")]
    pub(crate) nextest: Vec<String>,
}

/// The stages in order: cheap ones that fail often come first. The tests come last, so that the output ends with
/// nextest's summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Stage {
    Fmt,
    Layers,
    Needs,
    Build,
    Tests,
}

/// # Errors
/// Names the first stage that failed.
pub(crate) fn run(workspace: &Metadata, options: &TestOptions) -> Result<()> {
    let filtered = !options.nextest.is_empty();
    ensure!(
        !filtered || matches!(options.only, None | Some(Stage::Tests)),
        "only the stage `tests` takes arguments"
    );
    let mut environment = Vec::new();
    let mut times = Vec::new();
    for stage in plan(options.only, filtered) {
        println!("── {}", name(stage));
        let (result, time) = timed(|| run_stage(stage, workspace, options, &mut environment));
        result.with_context(|| format!("stage {} after {}", name(stage), show(time)))?;
        if stage != Stage::Tests {
            println!("── {}: {}", name(stage), show(time));
        }
        times.push(format!("{} {}", name(stage), show(time)));
    }
    println!("ok: {}", times.join(", "));
    Ok(())
}

fn plan(only: Option<Stage>, filtered: bool) -> Vec<Stage> {
    let wanted = |stage: &Stage| match only {
        Some(Stage::Tests) => matches!(stage, Stage::Needs | Stage::Build | Stage::Tests),
        Some(only) => *stage == only,
        None => !filtered || *stage != Stage::Fmt,
    };
    Stage::value_variants().iter().copied().filter(wanted).collect()
}

fn run_stage(
    stage: Stage,
    workspace: &Metadata,
    options: &TestOptions,
    environment: &mut Vec<(String, String)>,
) -> Result<()> {
    let root = workspace.workspace_root.as_std_path();
    match stage {
        Stage::Fmt => run::run(&mut run::cargo(root, &["fmt", "--all", "--check"])),
        Stage::Layers => layers::run(workspace, false),
        Stage::Needs => {
            environment.extend(needs::provide(root));
            Ok(())
        }
        Stage::Build => {
            // A test run of the whole workspace builds the binary itself, with other features; a build here would repeat all of it.
            if chooses_some_packages(&options.nextest) {
                run::run(&mut run::cargo(root, &["build", "--locked", "--workspace", "--bin", "callboard"]))?;
            }
            let binary = workspace.target_directory.join("debug").join("callboard");
            environment.push(("CALLBOARD_BIN".to_owned(), binary.into_string()));
            Ok(())
        }
        Stage::Tests => {
            let mut nextest = run::cargo(root, &["nextest", "run", "--locked"]);
            // nextest ignores -p if there is also --workspace.
            if !chooses_packages(&options.nextest) {
                // `cargo xtask bench training` runs the tests of `worlds`.
                nextest.args(["--workspace", "--exclude", "worlds"]);
            }
            // One build for the lints and the tests of the whole workspace.
            if options.nextest.is_empty() {
                nextest.envs(lints(root)?);
            }
            nextest.args(&options.nextest).envs(environment.drain(..));
            with_cluster(workspace, nextest)
        }
    }
}

/// Builds with clippy in place of the compiler; a warning is an error.
fn lints(root: &Path) -> Result<[(String, String); 2]> {
    let sysroot = run::output(run::command("rustc").current_dir(root).args(["--print", "sysroot"]))?;
    let driver = Path::new(&sysroot).join("bin").join("clippy-driver");
    ensure!(driver.is_file(), "no clippy: run `rustup component add clippy`");
    Ok([
        ("RUSTC_WORKSPACE_WRAPPER".to_owned(), driver.display().to_string()),
        // The form in which `cargo clippy` passes its arguments.
        ("CLIPPY_ARGS".to_owned(), "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__".to_owned()),
    ])
}

fn with_cluster(workspace: &Metadata, mut nextest: Command) -> Result<()> {
    if needs::in_ci() {
        // CI uses the same random cases in each run, so that only the change affects the result; elsewhere they are new each time.
        for (name, value) in [("NEXTEST_PROFILE", "ci"), ("PROPTEST_RNG_SEED", "1")] {
            if env::var_os(name).is_none() {
                nextest.env(name, value);
            }
        }
    }
    if env::var_os(THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        nextest.env(THREADS, threads(cores).to_string());
    }
    // Without PostgreSQL the tests that need it fail because of CALLBOARD_MISSING_POSTGRES; the others still run.
    let cluster = match cluster::binaries() {
        Some(bin) => {
            let log = workspace.target_directory.join("xtask").join("postgres.log");
            let cluster = Cluster::start(bin, log.as_std_path()).context("the tests' PostgreSQL")?;
            println!("PostgreSQL: {} (log: {log})", cluster.dsn());
            nextest.env("CALLBOARD_TEST_DSN", cluster.dsn());
            Some(cluster)
        }
        None => None,
    };
    let result = run::run(&mut nextest);
    drop(cluster);
    result
}

/// Number of concurrent tests. Most tests wait for leases, clocks and other processes: a test uses 0.4 cores on average,
/// including PostgreSQL. PostgreSQL has enough connections for this number.
fn threads(cores: usize) -> usize {
    cores.max(MAX_WAITING_THREADS.min(2 * cores))
}

/// Whether the arguments select some packages, but not the whole workspace.
fn chooses_some_packages(args: &[String]) -> bool {
    chooses_packages(args) && !args.iter().any(|arg| arg == "--workspace")
}

fn chooses_packages(args: &[String]) -> bool {
    let ours = args.iter().take_while(|arg| *arg != "--");
    ours.into_iter().any(|arg| arg.starts_with("-p") || arg.starts_with("--package") || arg == "--workspace")
}

#[allow(clippy::disallowed_methods, reason = "a stopwatch for the person who waits; nothing depends on it")]
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed())
}

fn show(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn name(stage: Stage) -> String {
    format!("{stage:?}").to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_check_is_every_stage_and_ends_with_the_tests() {
        let all = plan(None, false);
        assert_eq!(all, Stage::value_variants());
        assert_eq!(all.last(), Some(&Stage::Tests));
    }

    #[test]
    fn a_filter_skips_stages_other_than_tests() {
        assert_eq!(plan(None, true), [Stage::Layers, Stage::Needs, Stage::Build, Stage::Tests]);
        assert_eq!(plan(Some(Stage::Tests), true), [Stage::Needs, Stage::Build, Stage::Tests]);
        assert_eq!(plan(Some(Stage::Fmt), false), [Stage::Fmt]);
    }

    #[test]
    fn tests_that_wait_share_cores() {
        assert_eq!([1, 2, 4, 8, 12, 16, 64].map(threads), [2, 4, 8, 16, 16, 16, 64]);
    }

    #[test]
    fn a_chosen_package_replaces_the_workspace() {
        let args = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert!(chooses_packages(&args("-p store some_name")));
        assert!(chooses_packages(&args("--package=store")));
        assert!(
            chooses_some_packages(&args("-p store"))
                && !chooses_some_packages(&args("--workspace some_name"))
        );
        assert!(!chooses_packages(&args("some_name -- -p")));
        assert!(!chooses_packages(&args("--no-capture chat")));
    }
}
