//! `callboard workflow …`: makes workflows, saves their versions, opens them to the public.

mod change;
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
use wire::FieldError;

use crate::complaint::{self, Places};
use crate::options::{ClientOptions, Session, in_workspace};
use crate::output::{Failure, Output, complain};
use crate::terminal::Paint;

/// What can be done with workflows. A workflow is named by its handle or its id.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Create a workflow without a version.
    Create(create::Create),
    /// Save a graph as the workflow's latest version.
    Upload(upload::Upload),
    /// Publish the workflow's chat and print its address.
    Publish(publish::Publish),
    /// Close the workflow's chat.
    Unpublish(publish::Unpublish),
    /// List workflows, newest first.
    List(list::List),
    /// Show a workflow and its versions.
    Show(show::Show),
    /// Check a graph and print every problem. Needs no service.
    Check(check::Check),
    /// Show the differences between two versions.
    Diff(diff::Diff),
    /// Rename a workflow
    Rename(change::Rename),
    /// Change the description of a workflow
    Describe(change::Describe),
    /// Archive a workflow
    Archive(change::Archive),
    /// Make an earlier version live for the chat, triggers and sub-workflows
    Rollback(rollback::Rollback),
    /// Make a version live for the chat, triggers and sub-workflows
    Live(live::Live),
    /// Manage how versions become live
    #[command(subcommand)]
    Rollout(RolloutCommand),
}

/// Answers how to print what goes wrong, too.
pub(crate) fn run(command: WorkflowCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    match command {
        WorkflowCommand::Create(command) => in_workspace!(command, outer),
        WorkflowCommand::Upload(command) => in_workspace!(command, outer),
        WorkflowCommand::Publish(command) => in_workspace!(command, outer),
        WorkflowCommand::Unpublish(command) => in_workspace!(command, outer),
        WorkflowCommand::List(command) => in_workspace!(command, outer),
        WorkflowCommand::Show(command) => in_workspace!(command, outer),
        WorkflowCommand::Diff(command) => in_workspace!(command, outer),
        WorkflowCommand::Rename(command) => in_workspace!(command, outer),
        WorkflowCommand::Describe(command) => in_workspace!(command, outer),
        WorkflowCommand::Archive(command) => in_workspace!(command, outer),
        WorkflowCommand::Rollback(command) => in_workspace!(command, outer),
        WorkflowCommand::Live(command) => in_workspace!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Show(command)) => in_workspace!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Set(command)) => in_workspace!(command, outer),
        WorkflowCommand::Rollout(RolloutCommand::Promote(command)) => in_workspace!(command, outer),
        WorkflowCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
    }
}

/// What may be a mistake, on standard error.
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
