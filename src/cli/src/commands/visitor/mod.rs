//! `callboard visitor …`: the data of a chat's visitors, for the workflow's owner.

mod erase;
mod export;

use clap::{Args, Subcommand};

use crate::options::{ClientOptions, WorkspaceOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage the data of a visitor. Members need the role admin or owner, tokens the scope workflows:write.
#[derive(Debug, Subcommand)]
pub(crate) enum VisitorCommand {
    /// Export threads, items, feedback and files of a visitor as NDJSON.
    Export(export::ExportVisitor),
    /// Erase all data of a visitor.
    Erase(erase::Erase),
}

/// A visitor of a workflow's chat.
#[derive(Debug, Args)]
struct VisitorArguments {
    /// Handle or id of the workflow.
    workflow: String,
    /// The visitor, as `callboard thread list` names it: `visitor:…`, `session:…` or `user:…`.
    visitor: String,
    #[command(flatten)]
    options: WorkspaceOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: VisitorCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        VisitorCommand::Export(command) => with_session!(command, command.named.options, outer),
        VisitorCommand::Erase(command) => with_session!(command, command.named.options, outer),
    }
}
