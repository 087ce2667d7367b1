//! `callboard token …`: service tokens, for programs that call the service.

mod issue;
mod list;
mod revoke;
mod show;

use clap::Subcommand;

pub(super) use self::show::lines;
use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage service tokens.
#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token. Only its secret goes to standard output; it is shown only once.
    Create(issue::CreateTokenArgs),
    /// List tokens, newest first.
    List(list::ListTokens),
    /// Show a token without its secret.
    Show(show::ShowToken),
    /// Replace the secret of a token. Only the new secret goes to standard output; it is shown only once.
    Rotate(issue::Rotate),
    /// Revoke a token.
    Revoke(revoke::Revoke),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: TokenCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        TokenCommand::Create(command) => with_session!(command, outer),
        TokenCommand::List(command) => with_session!(command, outer),
        TokenCommand::Show(command) => with_session!(command, outer),
        TokenCommand::Rotate(command) => with_session!(command, outer),
        TokenCommand::Revoke(command) => with_session!(command, outer),
    }
}
