//! `callboard dataset …`: stored cases for trainings and evaluations.

mod add;
mod delete;
mod export;
mod import;
mod list;
mod show;

use clap::{Args, Subcommand};
use wire::DatasetRecord;

use crate::options::{ClientOptions, InWorkspace, in_workspace};
use crate::output::{Failure, Output, say};
use crate::table::second;
use crate::terminal::harmless;

/// Manage datasets. A dataset is identified by its name within the workflow or by its id.
#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the datasets of a workflow, newest first
    List(list::List),
    /// Show a dataset and its first cases
    Show(show::Show),
    /// Create a dataset, or give it a new version, from a file, from feedback or from runs
    Import(import::Import),
    /// Add a run that has ended to a dataset, so that a replay calls only models
    Add(add::Add),
    /// Print all cases of a version, one JSON object per line
    Export(export::Export),
    /// Delete a dataset; runs that use it keep its cases
    Delete(delete::Delete),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: DatasetCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! of_dataset {
        ($command:expr) => {
            crate::options::with_service_in(
                &$command.named.options.clone().or(outer),
                &$command.named.place,
                async |session| $command.run(session).await,
            )
        };
    }
    match command {
        DatasetCommand::List(command) => in_workspace!(command, outer),
        DatasetCommand::Show(command) => of_dataset!(command),
        DatasetCommand::Import(command) => of_dataset!(command),
        DatasetCommand::Add(command) => in_workspace!(command, outer),
        DatasetCommand::Export(command) => of_dataset!(command),
        DatasetCommand::Delete(command) => of_dataset!(command),
    }
}

/// A dataset of a workflow.
#[derive(Debug, Args)]
struct DatasetArguments {
    /// Handle or id of the workflow
    workflow: String,
    /// Name of the dataset
    #[arg(value_name = "DATASET")]
    dataset: String,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

/// Prints one line per field.
fn print(dataset: &DatasetRecord) -> Result<(), Failure> {
    let lines = [
        ("dataset", harmless(&dataset.name).into_owned()),
        ("id", dataset.id.clone()),
        ("version", dataset.version.to_string()),
        ("cases", dataset.n_cases.to_string()),
        ("updated", second(&dataset.updated_at)),
    ];
    lines.iter().try_for_each(|(name, value)| say(format_args!("{name:<10} {value}")))
}
