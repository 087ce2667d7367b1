//! `callboard thread …`: a chat's threads, for the workflow's owner.

mod change;
mod list;
mod show;

use clap::{Args, Subcommand};

use crate::options::{ClientOptions, InWorkspace, in_workspace};
use crate::output::{Failure, Output};

/// Manage the threads of a chat. Members need the role admin or owner, tokens the scope workflows:write.
#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// List the threads of a chat, newest first.
    List(list::List),
    /// Show what a thread contains, as its visitor sees it.
    Show(show::Show),
    /// Rename, lock, close or reopen a thread.
    Change(change::Change),
}

/// A thread of a workflow.
#[derive(Debug, Args)]
struct ThreadArguments {
    /// Handle or id of the workflow.
    workflow: String,
    /// Id of the thread.
    thread: String,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: ThreadCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! of_thread {
        ($command:expr) => {
            crate::options::with_service_in(
                &$command.named.options.clone().or(outer),
                &$command.named.place,
                async |session| $command.run(session).await,
            )
        };
    }
    match command {
        ThreadCommand::List(command) => in_workspace!(command, outer),
        ThreadCommand::Show(command) => of_thread!(command),
        ThreadCommand::Change(command) => of_thread!(command),
    }
}
