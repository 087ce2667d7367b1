//! `callboard thread …`: a chat's threads, for the workflow's owner.

mod change;
mod list;
mod show;

use clap::{Args, Subcommand};

use crate::options::{ClientOptions, WorkspaceOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage the threads of a chat. Members need the role admin or owner, tokens the scope workflows:write.
#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    /// List the threads of a chat, newest first.
    List(list::ListThreads),
    /// Show what a thread contains, as its visitor sees it.
    Show(show::ShowThread),
    /// Rename, lock, close or reopen a thread.
    Change(change::ChangeThread),
}

/// A thread of a workflow.
#[derive(Debug, Args)]
struct ThreadArguments {
    /// Handle or id of the workflow.
    workflow: String,
    /// Id of the thread.
    thread: String,
    #[command(flatten)]
    options: WorkspaceOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: ThreadCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        ThreadCommand::List(command) => with_session!(command, outer),
        ThreadCommand::Show(command) => with_session!(command, command.named.options, outer),
        ThreadCommand::Change(command) => with_session!(command, command.named.options, outer),
    }
}
