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

use crate::options::{ClientOptions, InWorkspace, in_workspace, with_service_in};
use crate::output::{Failure, Output};

/// Manage hosted apps. An app is identified by its alias or its id.
#[derive(Debug, Subcommand)]
pub(crate) enum AppCommand {
    /// Check the bundle of an app and print every finding. Needs no service
    Check(check::Check),
    /// Create an app
    Create(manage::Create),
    /// List the apps of the workspace, newest first
    List(manage::List),
    /// Show an app
    Show(manage::Show),
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
    Delete(manage::Delete),
}

/// An app.
#[derive(Debug, Args)]
struct AppArguments {
    /// Alias or id of the app
    #[arg(value_name = "APP")]
    app: String,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: AppCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    macro_rules! of_app {
        ($command:expr) => {
            with_service_in(
                &$command.named.options.clone().or(outer),
                &$command.named.place,
                async |session| $command.run(session).await,
            )
        };
    }
    match command {
        AppCommand::Check(command) => {
            let options = command.options.clone().or(outer);
            (options.output(), command.run(&options))
        }
        AppCommand::Create(command) => in_workspace!(command, outer),
        AppCommand::List(command) => in_workspace!(command, outer),
        AppCommand::Show(command) => of_app!(command),
        AppCommand::Update(command) => of_app!(command),
        AppCommand::Deploy(command) => of_app!(command),
        AppCommand::Permissions(command) => of_app!(command),
        AppCommand::Acknowledge(command) => of_app!(command),
        AppCommand::Publish(command) => of_app!(command),
        AppCommand::Rollback(command) => of_app!(command),
        AppCommand::Releases(command) => of_app!(command),
        AppCommand::Deployments(command) => of_app!(command),
        AppCommand::Bindings(command) => of_app!(command),
        AppCommand::Collections(command) => {
            let (options, place) = command.options();
            with_service_in(&options.or(outer), &place, async |session| command.run(session).await)
        }
        AppCommand::Logs(command) => command.run(outer),
        AppCommand::Delete(command) => of_app!(command),
    }
}
