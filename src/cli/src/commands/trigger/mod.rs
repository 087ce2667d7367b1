//! `callboard trigger …`: a workflow's cron and webhook triggers.

mod cron;
mod list;
mod remove;
mod show;
mod webhook;

use clap::Subcommand;

use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage triggers. A workflow is identified by its handle or id; it has one schedule and one webhook at most.
#[derive(Debug, Subcommand)]
pub(crate) enum TriggerCommand {
    /// List the schedules and webhooks of all workflows.
    List(list::ListTriggers),
    /// Show the schedule and the webhook of a workflow.
    Show(show::ShowTriggers),
    /// Start runs on a schedule.
    Cron(cron::Cron),
    /// Start a run for each call of the webhook's address.
    Webhook(webhook::Webhook),
    /// Remove the schedule or the webhook. Runs that it started continue.
    Remove(remove::Remove),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: TriggerCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        TriggerCommand::List(command) => with_session!(command, outer),
        TriggerCommand::Show(command) => with_session!(command, outer),
        TriggerCommand::Cron(command) => with_session!(command, outer),
        TriggerCommand::Webhook(command) => with_session!(command, outer),
        TriggerCommand::Remove(command) => with_session!(command, outer),
    }
}
