//! `callboard trigger …`: what begins runs of a workflow by itself.

mod cron;
mod remove;
mod show;
mod webhook;

use clap::Subcommand;

use crate::options::{ClientOptions, with_service_in};
use crate::output::{Failure, Output};

/// What can be done with triggers. A workflow is named by its handle or id; it has one schedule and one webhook at most.
#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    /// Show the schedule and the webhook of a workflow.
    Show(show::Show),
    /// Start runs on a schedule.
    Cron(cron::Cron),
    /// Start a run for each call of the webhook's address.
    Webhook(webhook::Webhook),
    /// Remove the schedule or the webhook. Runs that it started continue.
    Remove(remove::Remove),
}

/// Answers how to print what goes wrong, too.
pub(crate) fn run(command: TriggerCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! with_service {
        ($command:expr) => {
            with_service_in(&$command.options.clone().or(outer), &$command.place, async |session| {
                $command.run(session).await
            })
        };
    }
    match command {
        TriggerCommand::Show(command) => with_service!(command),
        TriggerCommand::Cron(command) => with_service!(command),
        TriggerCommand::Webhook(command) => with_service!(command),
        TriggerCommand::Remove(command) => with_service!(command),
    }
}
