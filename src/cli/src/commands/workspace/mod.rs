//! `callboard workspace …`: workspaces and their members.

mod manage;
mod members;
mod show;

use clap::Subcommand;

use crate::options::{ClientOptions, with_session};
use crate::output::{CommandError, Output};

/// Manage workspaces. A workspace is identified by its slug or its id, a member by email address or id.
#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Create a workspace that you own.
    Create(manage::CreateWorkspaceArgs),
    /// List the workspaces that you may see, newest first.
    List(manage::ListWorkspaces),
    /// Show a workspace: your role, its storage use, its quota and its settings.
    Show(show::ShowWorkspace),
    /// Change the display name of a workspace. Its slug stays.
    Rename(manage::Rename),
    /// Change the settings of a workspace.
    Set(manage::Set),
    /// Delete a workspace and archive its workflows. Its slug cannot be reused.
    Delete(manage::DeleteWorkspace),
    /// List the members and invitations of a workspace.
    Members(members::ListMembers),
    /// Add a member and notify them by email. A person without an account receives an invitation for 7 days.
    Invite(members::Invite),
    /// Change the role of a member.
    Role(members::ChangeRole),
    /// Remove a member or withdraw an invitation.
    Remove(members::Remove),
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: WorkspaceCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        WorkspaceCommand::Create(command) => with_session!(command, outer),
        WorkspaceCommand::List(command) => with_session!(command, outer),
        WorkspaceCommand::Show(command) => with_session!(command, outer),
        WorkspaceCommand::Rename(command) => with_session!(command, outer),
        WorkspaceCommand::Set(command) => with_session!(command, outer),
        WorkspaceCommand::Delete(command) => with_session!(command, outer),
        WorkspaceCommand::Members(command) => with_session!(command, outer),
        WorkspaceCommand::Invite(command) => with_session!(command, outer),
        WorkspaceCommand::Role(command) => with_session!(command, outer),
        WorkspaceCommand::Remove(command) => with_session!(command, outer),
    }
}
