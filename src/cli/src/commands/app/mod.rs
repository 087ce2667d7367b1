//! `callboard app …`: hosted apps.

pub(crate) mod archive;
mod check;
mod deploy;
mod drafts;
mod logs;
mod manage;
mod releases;
mod report;

use clap::{Args, Subcommand};

use crate::options::{ClientOptions, WorkspaceOptions, with_renewing_session, with_session};
use crate::output::{CommandError, Output};

/// Manage hosted apps. An app is identified by its alias or its id.
#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// Check the bundle of an app and print every finding. Needs no service
    Check(check::CheckBundle),
    /// Create an app
    Create(manage::CreateAppArgs),
    /// List the apps of the workspace, newest first
    List(manage::ListApps),
    /// Show an app
    Show(manage::ShowApp),
    /// Change the name of an app, or the access to it
    Update(manage::Update),
    /// Upload a bundle as a new deployment
    Deploy(deploy::Deploy),
    /// Show the permissions of a deployment and the differences from the active release
    Permissions(releases::Permissions),
    /// Acknowledge the permissions of a deployment
    Acknowledge(releases::Acknowledge),
    /// Publish a deployment
    Publish(releases::Publish),
    /// Publish an earlier release again
    Rollback(releases::Rollback),
    /// List the releases of an app, newest first
    Releases(releases::Releases),
    /// List the deployments of an app, newest first
    Deployments(deploy::Deployments),
    /// List the bindings of an app, which apply without a manifest
    Bindings(drafts::Bindings),
    /// List, create and delete the collections of an app, which apply without a manifest
    Collections(drafts::Collections),
    /// Print the runs that pages of an app have started, the newest last
    Logs(logs::Logs),
    /// Delete an app with its deployments
    Delete(manage::DeleteApp),
}

/// An app.
#[derive(Debug, Args)]
struct AppArguments {
    /// Alias or id of the app
    #[arg(value_name = "APP")]
    app: String,
    #[command(flatten)]
    options: WorkspaceOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: AppCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        AppCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
        AppCommand::Create(command) => with_session!(command, outer),
        AppCommand::List(command) => with_session!(command, outer),
        AppCommand::Show(command) => with_session!(command, command.named.options, outer),
        AppCommand::Update(command) => with_session!(command, command.named.options, outer),
        AppCommand::Deploy(command) => with_session!(command, command.named.options, outer),
        AppCommand::Permissions(command) => with_session!(command, command.named.options, outer),
        AppCommand::Acknowledge(command) => with_session!(command, command.named.options, outer),
        AppCommand::Publish(command) => with_session!(command, command.named.options, outer),
        AppCommand::Rollback(command) => with_session!(command, command.named.options, outer),
        AppCommand::Releases(command) => with_session!(command, command.named.options, outer),
        AppCommand::Deployments(command) => with_session!(command, command.named.options, outer),
        AppCommand::Bindings(command) => with_session!(command, command.named.options, outer),
        AppCommand::Collections(command) => with_session!(command, command.options(), outer),
        AppCommand::Logs(command) => with_renewing_session!(command, command.named.options, outer),
        AppCommand::Delete(command) => with_session!(command, command.named.options, outer),
    }
}
