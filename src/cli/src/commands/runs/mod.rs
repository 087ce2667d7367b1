//! `callboard runs …`: the runs of a workspace.

mod cancel;
mod list;
mod show;
mod trace;
mod watch;

use clap::Subcommand;

use crate::options::{ClientOptions, with_service, with_service_in};
use crate::output::{Failure, Output};

/// Manage runs. A run is identified by its id; chat turns are runs too.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List runs, newest first.
    List(list::List),
    /// Show a run: its state, what it waits for, and how it ended.
    Show(show::Show),
    /// Show each attempt of its nodes, with times and errors.
    Trace(trace::Trace),
    /// Watch a run to its end.
    Watch(watch::Watch),
    /// Cancel a run; one that has ended stays as it is.
    Cancel(cancel::Cancel),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: RunsCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! of_run {
        ($command:expr) => {
            with_service(&$command.options.clone().or(outer), async |session| $command.run(session).await)
        };
    }
    match command {
        RunsCommand::List(command) => {
            with_service_in(&command.options.clone().or(outer), &command.place, async |session| {
                command.run(session).await
            })
        }
        RunsCommand::Show(command) => of_run!(command),
        RunsCommand::Trace(command) => of_run!(command),
        RunsCommand::Watch(command) => of_run!(command),
        RunsCommand::Cancel(command) => of_run!(command),
    }
}
