//! `callboard workflow …`: makes workflows, saves their versions, opens them to the public.

mod change;
mod check;
mod create;
mod diff;
mod file;
mod list;
mod locate;
mod publish;
mod rollback;
mod show;
mod suggest;
mod upload;

use clap::Subcommand;
use wire::FieldError;

use crate::complaint::{self, Places};
use crate::options::{ClientOptions, Session, with_service_in};
use crate::output::{Failure, Output, complain};
use crate::terminal::Paint;

/// What can be done with workflows. A workflow is named by its handle or its id.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Create a workflow without a version.
    Create(create::Create),
    /// Save a graph as the workflow's newest version.
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
}

/// Answers how to print what goes wrong, too.
pub(crate) fn run(command: WorkflowCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! with_service {
        ($command:expr, $options:expr) => {
            with_service_in(&$options.or(outer), &$command.place, async |session| $command.run(session).await)
        };
    }
    match command {
        WorkflowCommand::Create(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Upload(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Publish(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Unpublish(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::List(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Show(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Diff(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Rename(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Describe(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Archive(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Rollback(command) => with_service!(command, command.options.clone()),
        WorkflowCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
    }
}

/// What may be a mistake, on standard error.
fn warn(session: &Session, warnings: &[FieldError], places: &impl Places) {
    if session.output == Output::Json {
        return;
    }
    let paint = Paint::stderr();
    for warning in warnings {
        let place = places.place(&warning.pointer);
        let line = complaint::line(warning, place.as_ref(), paint);
        complain(format_args!("{} {line}", paint.warning("warning:")));
    }
}
