//! The developers' commands: `cargo xtask test`, `layers`, `docs`, `bench`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool talks to its terminal")]

mod bench;
mod cluster;
mod language;
mod layers;
mod modules;
mod named;
mod needs;
mod rules;
mod run;
mod sources;
mod test;
mod unlinked;

use std::path::Path;
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
    /// Check package imports, outside crates, the language, and a few source rules.
    Layers {
        /// Lower the limits of the language rules to the current counts.
        #[arg(long)]
        lower: bool,
    },
    /// Install the commit message check.
    Hooks(language::Hooks),
    /// Run the whole check, cheap stages first; with nextest arguments only those tests.
    Test(test::TestOptions),
    /// Measure performance, compared with a floor that runs at the same time.
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
    #[command(flatten)]
    Program(bench::Program),
    /// Write the generated pages in docs/.
    Docs,
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
        Task::Layers { lower } => layers::run(&workspace, lower),
        Task::Hooks(hooks) => hooks.run(workspace.workspace_root.as_std_path()),
        Task::Test(options) => test::run(&workspace, &options),
        Task::Bench { bench } => bench::run(workspace.workspace_root.as_std_path(), &bench),
        Task::Program(program) => bench::program(workspace.target_directory.as_std_path(), program),
        Task::Docs => docs(workspace.workspace_root.as_std_path()),
    }
}

/// Writes the generated pages. Uses the features of the whole workspace, so that nothing is built twice.
fn docs(root: &Path) -> Result<()> {
    let arguments = ["test", "--locked", "--workspace", "--test", "docs", "--", "generated", "--nocapture"];
    run::run(run::cargo(root, &arguments).env("UPDATE", "1"))
}

/// Reads the metadata with all features, to include optional crates, and locked, to check the committed lock file.
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
    fn unknown_arguments_are_passed_to_nextest_unchanged() {
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
