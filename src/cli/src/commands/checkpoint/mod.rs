//! `callboard checkpoint …`: the prompts found by trainings.

mod diff;
mod lines;
mod list;
mod locate;
mod promote;
mod record;
mod show;

use clap::Subcommand;

pub(super) use record::{epoch_of, prompt_texts, score_of};

use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage checkpoints. A checkpoint is identified by its number within the workflow or by its id.
#[derive(Debug, Subcommand)]
pub(crate) enum CheckpointCommand {
    /// List the checkpoints of a workflow, newest first
    List(list::ListCheckpoints),
    /// Show the prompts and the metrics of a checkpoint
    Show(show::ShowCheckpoint),
    /// Compare the prompts of two checkpoints line by line
    Diff(diff::Diff),
    /// Save the prompts of a checkpoint as a new version of the workflow
    Use(promote::Use),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: CheckpointCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        CheckpointCommand::List(command) => with_session!(command, outer),
        CheckpointCommand::Show(command) => with_session!(command, outer),
        CheckpointCommand::Diff(command) => with_session!(command, outer),
        CheckpointCommand::Use(command) => with_session!(command, outer),
    }
}
