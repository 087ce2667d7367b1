//! `callboard workspace …`: workspaces, and the people in them.

mod manage;
mod members;
mod show;

use clap::Subcommand;

use crate::options::{ClientOptions, with_service};
use crate::output::{Failure, Output};

/// What can be done with workspaces. A workspace is named by its slug or its id, a member by mail address or id.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Make a workspace. Whoever is signed in owns it.
    Create(manage::Create),
    /// List the workspaces that one may see, the newest first.
    List(manage::List),
    /// Show a workspace: what one is there, and how much it keeps of how much it may keep.
    Show(show::Show),
    /// Give a workspace another name for people. Its slug stays.
    Rename(manage::Rename),
    /// Take a workspace away, and archive its workflows. Its slug never names another one.
    Delete(manage::Delete),
    /// List the members of a workspace, and those who are invited.
    Members(members::List),
    /// Make somebody a member, and tell them by mail. Without an account they are invited for 7 days.
    Invite(members::Invite),
    /// Give a member another role.
    Role(members::ChangeRole),
    /// Remove a member, or take an invitation back.
    Remove(members::Remove),
}

/// Answers how to print what goes wrong, too.
pub(crate) fn run(command: WorkspaceCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! with_service {
        ($command:expr) => {
            with_service(&$command.options.clone().or(outer), async |session| $command.run(session).await)
        };
    }
    match command {
        WorkspaceCommand::Create(command) => with_service!(command),
        WorkspaceCommand::List(command) => with_service!(command),
        WorkspaceCommand::Show(command) => with_service!(command),
        WorkspaceCommand::Rename(command) => with_service!(command),
        WorkspaceCommand::Delete(command) => with_service!(command),
        WorkspaceCommand::Members(command) => with_service!(command),
        WorkspaceCommand::Invite(command) => with_service!(command),
        WorkspaceCommand::Role(command) => with_service!(command),
        WorkspaceCommand::Remove(command) => with_service!(command),
    }
}
