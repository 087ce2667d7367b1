//! `callboard dataset …`: stored cases for trainings and evaluations.

mod add;
mod delete;
mod export;
mod import;
mod list;
mod show;

use clap::{Args, Subcommand};
use wire::DatasetRecord;

use crate::options::{ClientOptions, WorkspaceOptions, with_session};
use crate::output::{CommandError, Output, say};
use crate::table::second;
use crate::terminal::harmless;

/// Manage datasets. A dataset is identified by its name within the workflow or by its id.
#[derive(Debug, Subcommand)]
pub(crate) enum DatasetCommand {
    /// List the datasets of a workflow, newest first
    List(list::ListDatasets),
    /// Show a dataset and its first cases
    Show(show::ShowDataset),
    /// Create a dataset, or give it a new version, from a file, from feedback or from runs
    Import(import::Import),
    /// Add a run that has ended to a dataset, so that a replay calls only models
    Add(add::Add),
    /// Print all cases of a version, one JSON object per line
    Export(export::ExportDataset),
    /// Delete a dataset; runs that use it keep its cases
    Delete(delete::DeleteDataset),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: DatasetCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        DatasetCommand::List(command) => with_session!(command, outer),
        DatasetCommand::Show(command) => with_session!(command, command.named.options, outer),
        DatasetCommand::Import(command) => with_session!(command, command.named.options, outer),
        DatasetCommand::Add(command) => with_session!(command, outer),
        DatasetCommand::Export(command) => with_session!(command, command.named.options, outer),
        DatasetCommand::Delete(command) => with_session!(command, command.named.options, outer),
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
    options: WorkspaceOptions,
}

/// Prints one line per field.
fn print(dataset: &DatasetRecord) -> Result<(), CommandError> {
    let lines = [
        ("dataset", harmless(&dataset.name).into_owned()),
        ("id", dataset.id.clone()),
        ("version", dataset.version.to_string()),
        ("cases", dataset.n_cases.to_string()),
        ("updated", second(&dataset.updated_at)),
    ];
    lines.iter().try_for_each(|(name, value)| say(format_args!("{name:<10} {value}")))
}
