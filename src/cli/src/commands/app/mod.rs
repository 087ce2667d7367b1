//! `callboard app …`: hosted apps.

mod check;
mod folder;
mod report;

use clap::Subcommand;

use crate::options::ClientOptions;
use crate::output::{Failure, Output};

/// What can be done with hosted apps.
#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// Check the bundle of an app and print every finding. Needs no service
    Check(check::Check),
}

/// Returns how to print errors, too.
pub(crate) fn run(command: AppCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    match command {
        AppCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
    }
}
