//! `callboard visitor …`: the data of a chat's visitors, for the workflow's owner.

mod erase;
mod export;

use clap::{Args, Subcommand};

use crate::options::{ClientOptions, InWorkspace, with_service_in};
use crate::output::{Failure, Output};

/// Manage the data of a visitor. Members need the role admin or owner, tokens the scope workflows:write.
#[derive(Debug, Subcommand)]
pub(crate) enum VisitorCommand {
    /// Export threads, items, feedback and files of a visitor as NDJSON.
    Export(export::Export),
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
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: VisitorCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! of_visitor {
        ($command:expr) => {
            with_service_in(
                &$command.named.options.clone().or(outer),
                &$command.named.place,
                async |session| $command.run(session).await,
            )
        };
    }
    match command {
        VisitorCommand::Export(command) => of_visitor!(command),
        VisitorCommand::Erase(command) => of_visitor!(command),
    }
}
