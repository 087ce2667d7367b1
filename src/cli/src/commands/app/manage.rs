//! `callboard app create`, `list`, `show`, `update` and `delete`.

use clap::{Args, ValueEnum};
use wire::{AppAccess, AppRecord, CreateApp, UpdateApp};

use super::AppArguments;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, say};
use crate::parts;
use crate::table::{self, second};
use crate::terminal::harmless;

/// Access to an app.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum AccessArgument {
    /// Every visitor.
    Public,
    /// Members of the workspace who are signed in.
    Members,
}

impl From<AccessArgument> for AppAccess {
    fn from(access: AccessArgument) -> Self {
        match access {
            AccessArgument::Public => Self::Public,
            AccessArgument::Members => Self::Members,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct CreateAppArgs {
    /// Permanent first label of the app's host: a-z, 0-9 and hyphens
    #[arg(value_name = "ALIAS")]
    alias: String,
    /// Display name (default: the alias)
    #[arg(long)]
    name: Option<String>,
    /// Access to the app (default: members)
    #[arg(long, value_enum)]
    access: Option<AccessArgument>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListApps {
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ShowApp {
    #[command(flatten)]
    pub(super) named: AppArguments,
}

#[derive(Debug, Args)]
#[group(id = "change", required = true, multiple = true, args = ["name", "access"])]
pub(crate) struct Update {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// The new display name
    #[arg(long)]
    name: Option<String>,
    /// Access to the app; the change takes effect immediately
    #[arg(long, value_enum)]
    access: Option<AccessArgument>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteApp {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// Confirm; the app and its deployments cannot be restored
    #[arg(long)]
    yes: bool,
}

impl CreateAppArgs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let new = CreateApp {
            alias: self.alias.clone(),
            name: self.name.clone().unwrap_or_else(|| self.alias.clone()),
            access: self.access.map(AppAccess::from),
        };
        let made = session.received(session.client.create_app(&new).await)?;
        show(&made, session.output)
    }
}

impl ListApps {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all = parts::all(session, async |part| session.client.apps(part).await).await?;
        table::print_list(
            session.output,
            all,
            "No apps found. `callboard app create ALIAS` creates one.",
            ["ALIAS", "ACCESS", "RELEASE", "URL", "NAME"],
            row,
        )
    }
}

impl ShowApp {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = session.received(session.client.app(&self.named.app).await)?;
        show(&app, session.output)
    }
}

impl Update {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let change = UpdateApp { name: self.name.clone(), access: self.access.map(AppAccess::from) };
        let changed = session.client.update_app(&self.named.app, &change).await;
        show(&session.received(changed)?, session.output)
    }
}

impl DeleteApp {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        if !self.yes {
            return Err(CommandError::usage(format!(
                "add --yes to delete the app {app} with all its deployments"
            )));
        }
        session.received(session.client.delete_app(app).await)?;
        if session.output == Output::Human {
            complain("Deleted. No other app can have the alias for 30 days.");
        }
        Ok(())
    }
}

fn row(app: AppRecord) -> [String; 5] {
    [app.alias.clone(), app.access.as_str().to_owned(), release(&app), app.url, app.name]
}

/// The active release number.
fn release(app: &AppRecord) -> String {
    app.active_release.as_ref().map_or_else(|| "-".to_owned(), |release| release.number.to_string())
}

fn show(app: &AppRecord, output: Output) -> Result<(), CommandError> {
    let lines = [
        ("app", app.alias.clone()),
        ("name", harmless(&app.name).into_owned()),
        ("id", app.id.clone()),
        ("url", app.url.clone()),
        ("access", app.access.as_str().to_owned()),
        ("release", release(app)),
        ("created", second(&app.created_at)),
        ("updated", second(&app.updated_at)),
    ];
    output.print(app, || lines.iter().try_for_each(|(name, value)| say(format_args!("{name:<8} {value}"))))
}
