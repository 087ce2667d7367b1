//! `callboard workflow …`: creates workflows, saves versions and publishes them.

mod change;
mod chat;
mod check;
mod create;
mod diff;
pub(super) mod file;
mod list;
mod live;
mod publish;
mod rollback;
mod rollout;
mod show;
mod suggest;
mod upload;

use clap::Subcommand;
use rollout::RolloutCommand;
use wire::{FieldError, GateStatus, LiveReason, SavedVersion};

use crate::complaint::{self, Places};
use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output, complain, say};
use crate::terminal::Paint;

/// Manage workflows. A workflow is identified by its handle or its id.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Create a workflow without a version.
    Create(create::CreateWorkflowArgs),
    /// Save a graph as the workflow's latest version.
    Upload(upload::Upload),
    /// Publish the workflow's chat and print its address.
    Publish(publish::Publish),
    /// Close the workflow's chat.
    Unpublish(publish::Unpublish),
    /// List workflows, newest first.
    List(list::ListWorkflows),
    /// Show a workflow and its versions.
    Show(show::ShowWorkflow),
    /// Check a graph and print every problem. Needs no service.
    Check(check::CheckGraph),
    /// Show the differences between two versions.
    Diff(diff::Diff),
    /// Rename a workflow
    Rename(change::Rename),
    /// Change the description of a workflow
    Describe(change::Describe),
    /// Show and change the settings of the workflow's chat
    Chat(chat::ChatSettingsArgs),
    /// Archive a workflow, after showing what uses it
    Archive(change::Archive),
    /// Restore an archived workflow
    Restore(change::Restore),
    /// Make an earlier version live
    Rollback(rollback::Rollback),
    /// Make a version live for every run that names none
    Live(live::Live),
    /// Manage how versions become live
    #[command(subcommand)]
    Rollout(RolloutCommand),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: WorkflowCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        WorkflowCommand::Create(command) => with_session!(command, outer),
        WorkflowCommand::Upload(command) => with_session!(command, outer),
        WorkflowCommand::Publish(command) => with_session!(command, outer),
        WorkflowCommand::Unpublish(command) => with_session!(command, outer),
        WorkflowCommand::List(command) => with_session!(command, outer),
        WorkflowCommand::Show(command) => with_session!(command, outer),
        WorkflowCommand::Diff(command) => with_session!(command, outer),
        WorkflowCommand::Rename(command) => with_session!(command, outer),
        WorkflowCommand::Describe(command) => with_session!(command, outer),
        WorkflowCommand::Chat(command) => with_session!(command, outer),
        WorkflowCommand::Archive(command) => with_session!(command, outer),
        WorkflowCommand::Restore(command) => with_session!(command, outer),
        WorkflowCommand::Rollback(command) => with_session!(command, outer),
        WorkflowCommand::Live(command) => with_session!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Show(command)) => with_session!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Set(command)) => with_session!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Promote(command)) => with_session!(command, outer),
        WorkflowCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
    }
}

/// Prints which version is live after a save, unless it is the new version.
pub(super) fn say_live(workflow: &str, saved: &SavedVersion) -> Result<(), CommandError> {
    let number = saved.version.version.unwrap_or_default();
    let live = saved.live.version.map(|live| format!("version {live} stays live"));
    let live = live.unwrap_or_else(|| "no version is live".to_owned());
    let why = match saved.live.reason {
        LiveReason::Saved => return Ok(()),
        LiveReason::Restored => return say(format_args!("Version {number} is live again.")),
        LiveReason::Gate => match saved.version.gate.as_ref().map(|gate| gate.status) {
            Some(GateStatus::Failed) => "has failed its gate",
            _ => "has not passed its gate",
        },
        LiveReason::Canary => "waits until the canary has ended",
    };
    say(format_args!(
        "Not live yet: version {number} {why}; {live}. `callboard workflow live {workflow} {number}` changes that."
    ))
}

/// Prints warnings to standard error.
pub(super) fn warn(output: Output, warnings: &[FieldError], places: &impl Places) {
    if output == Output::Json {
        return;
    }
    let paint = Paint::stderr();
    for warning in warnings {
        let place = places.place(&warning.pointer);
        let line = complaint::line(warning, place.as_ref(), paint);
        complain(format_args!("{} {line}", paint.warning("warning:")));
    }
}
