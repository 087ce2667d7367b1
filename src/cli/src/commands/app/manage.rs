//! `callboard app create`, `list`, `show`, `update` and `delete`.

use clap::{Args, ValueEnum};
use wire::{AppAccess, AppRecord, CreateApp, UpdateApp};

use super::AppArguments;
use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::parts;
use crate::table::{self, second};
use crate::terminal::harmless;

/// Access to an app.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Access {
    /// Every visitor.
    Public,
    /// Members of the workspace who are signed in.
    Members,
}

impl From<Access> for AppAccess {
    fn from(access: Access) -> Self {
        match access {
            Access::Public => Self::Public,
            Access::Members => Self::Members,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Create {
    /// Permanent first label of the app's host: a-z, 0-9 and hyphens
    #[arg(value_name = "ALIAS")]
    alias: String,
    /// Display name (default: the alias)
    #[arg(long)]
    name: Option<String>,
    /// Access to the app (default: members)
    #[arg(long, value_enum)]
    access: Option<Access>,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Show {
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
    access: Option<Access>,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// Confirm; the app and its deployments cannot be restored
    #[arg(long)]
    yes: bool,
}

impl Create {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let new = CreateApp {
            alias: self.alias.clone(),
            name: self.name.clone().unwrap_or_else(|| self.alias.clone()),
            access: self.access.map(AppAccess::from),
        };
        let made = session.client.create_app(&new).await.map_err(|error| session.failed(error))?;
        show(&made, session.output)
    }
}

impl List {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let all = parts::all(session, async |part| session.client.apps(part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        if all.is_empty() {
            complain("No apps found. `callboard app create ALIAS` creates one.");
            return Ok(());
        }
        table::print(["ALIAS", "ACCESS", "RELEASE", "URL", "NAME"], all.into_iter().map(row).collect())
    }
}

impl Show {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let app = session.client.app(&self.named.app).await.map_err(|error| session.failed(error))?;
        show(&app, session.output)
    }
}

impl Update {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let change = UpdateApp { name: self.name.clone(), access: self.access.map(AppAccess::from) };
        let changed = session.client.update_app(&self.named.app, &change).await;
        show(&changed.map_err(|error| session.failed(error))?, session.output)
    }
}

impl Delete {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let app = &self.named.app;
        if !self.yes {
            return Err(Failure::usage(format!(
                "add --yes to delete the app {app} with all its deployments"
            )));
        }
        session.client.delete_app(app).await.map_err(|error| session.failed(error))?;
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

fn show(app: &AppRecord, output: Output) -> Result<(), Failure> {
    if output == Output::Json {
        return say(pretty(app)?);
    }
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
    lines.iter().try_for_each(|(name, value)| say(format_args!("{name:<8} {value}")))
}
