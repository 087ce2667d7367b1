//! `callboard runs …`: the runs of a workspace.

mod cancel;
mod list;
mod show;
mod trace;
mod watch;

use clap::Subcommand;

use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage runs. A run is identified by its id; chat turns are runs too.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(list::ListRuns),
    /// Show a run: its state, what it waits for, and how it ended.
    Show(show::ShowRun),
    /// Show each attempt of its nodes, with times and errors.
    Trace(trace::Trace),
    /// Watch a run to its end.
    Watch(watch::Watch),
    /// Cancel a run; one that has ended stays as it is.
    Cancel(cancel::Cancel),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: RunsCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        RunsCommand::List(command) => with_session!(command, outer),
        RunsCommand::Show(command) => with_session!(command, outer),
        RunsCommand::Trace(command) => with_session!(command, outer),
        RunsCommand::Watch(command) => with_session!(command, outer),
        RunsCommand::Cancel(command) => with_session!(command, outer),
    }
}
