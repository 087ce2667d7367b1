//! What developers run: `cargo xtask test`, `layers`, `docs`, `bench`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod bench;
mod cluster;
mod docs;
mod layers;
mod modules;
mod named;
mod needs;
mod rules;
mod run;
mod sources;
mod test;
mod unlinked;
mod words;

use std::process::ExitCode;

use anyhow::{Context, Result};
use cargo_metadata::{CargoOpt, Metadata, MetadataCommand};
use clap::{Parser, Subcommand};

/// The developer's commands of Callboard.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Check who imports whom, which outside crates come in, and a few rules of the sources.
    Layers,
    /// The whole check, cheap stages first; with nextest arguments only those tests.
    Test(test::Options),
    /// Measure, beside a floor that runs at the same time.
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
    #[command(flatten)]
    Program(bench::Program),
    /// Write the generated pages of docs/.
    Docs {
        /// Write nothing; fail when a page is not what the sources give.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> ExitCode {
    match start(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(task: Task) -> Result<()> {
    let workspace = workspace()?;
    match task {
        Task::Layers => layers::run(&workspace),
        Task::Test(options) => test::run(&workspace, &options),
        Task::Bench { bench } => bench::run(workspace.workspace_root.as_std_path(), &bench),
        Task::Program(program) => bench::program(workspace.target_directory.as_std_path(), program),
        Task::Docs { check } => docs::run(workspace.workspace_root.as_std_path(), check),
    }
}

/// All features, so that a crate hidden behind one is seen too; locked, so that what is checked is what is committed.
fn workspace() -> Result<Metadata> {
    MetadataCommand::new()
        .features(CargoOpt::AllFeatures)
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .context("cargo metadata")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn what_is_not_ours_goes_to_nextest_untouched() {
        let line = ["xtask", "test", "--only", "tests", "-p", "store", "some_name", "--", "--exact"];
        let Task::Test(options) = Cli::try_parse_from(line).unwrap().command else { panic!("not test") };
        assert_eq!(options.only, Some(test::Stage::Tests));
        assert_eq!(options.nextest, ["-p", "store", "some_name", "--", "--exact"]);
    }

    #[test]
    fn a_leading_double_dash_is_only_a_separator() {
        let Task::Test(options) = Cli::try_parse_from(["xtask", "test", "--", "-p", "wire"]).unwrap().command
        else {
            panic!("not test")
        };
        assert_eq!(options.nextest, ["-p", "wire"]);
    }
}
