//! `callboard workspace create`, `list`, `rename`, `set` and `delete`.

use clap::{Args, ValueEnum};
use wire::{CreateWorkspace, TrainingCalls, UpdateWorkspace, WorkspaceRecord};

use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::parts;
use crate::table;
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct CreateWorkspaceArgs {
    /// Permanent name in requests: words of a-z and 0-9, separated by hyphens.
    slug: String,
    /// Display name (default: the slug).
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct ListWorkspaces {
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// Slug or id.
    workspace: String,
    /// The new display name.
    name: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Slug or id.
    workspace: String,
    /// Retention of model replies after the end of a training.
    #[arg(long, value_enum)]
    training_calls: Replies,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Replies {
    /// Keep them as long as the training.
    Keep,
    /// Erase them, also those of earlier trainings.
    Drop,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteWorkspace {
    /// Slug or id.
    workspace: String,
    /// Confirm; this cannot be undone.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl CreateWorkspaceArgs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = CreateWorkspace { slug: self.slug.clone(), name: self.name.clone() };
        let made = session.received(session.client.create_workspace(&wanted).await)?;
        if session.output == Output::Json {
            return say(pretty(&made)?);
        }
        say(format_args!("Created workspace {}.", named(&made)))?;
        complain(format!(
            "Next: callboard workspace invite {0} person@example.org --role editor, or any command with --workspace {0}",
            harmless(&made.slug)
        ));
        Ok(())
    }
}

impl ListWorkspaces {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all = parts::all(session, async |part| session.client.workspaces(part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        let row = |found: WorkspaceRecord| {
            let role = found.role.unwrap_or_else(|| "-".to_owned());
            [
                found.slug,
                role,
                found.created_at.get(..10).unwrap_or_default().to_owned(),
                found.id,
                found.name,
            ]
        };
        table::print(["SLUG", "YOUR ROLE", "MADE", "ID", "NAME"], all.into_iter().map(row).collect())
    }
}

impl Rename {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let change = UpdateWorkspace { name: Some(self.name.clone()), training_calls: None };
        let renamed = session.received(session.client.update_workspace(&self.workspace, &change).await)?;
        session.output.print(&renamed, || say(format_args!("Renamed the workspace to {}.", named(&renamed))))
    }
}

impl Set {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let training_calls = match self.training_calls {
            Replies::Keep => TrainingCalls::Keep,
            Replies::Drop => TrainingCalls::Drop,
        };
        let change = UpdateWorkspace { name: None, training_calls: Some(training_calls) };
        let changed = session.received(session.client.update_workspace(&self.workspace, &change).await)?;
        let text = format!("Changed workspace {}. {}", named(&changed), replies(changed.training_calls));
        session.output.print(&changed, || say(text))
    }
}

impl DeleteWorkspace {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let name = harmless(&self.workspace);
        if !self.yes {
            return Err(CommandError::usage(format!(
                "this archives every workflow of {name} and removes its members, permanently; confirm with --yes"
            )));
        }
        session.received(session.client.delete_workspace(&self.workspace).await)?;
        session.output.say(format_args!("Deleted workspace {name}; its workflows are archived."))
    }
}

pub(super) fn named(workspace: &WorkspaceRecord) -> String {
    harmless(&format!("{} \"{}\"", workspace.slug, workspace.name)).into_owned()
}

pub(super) const fn replies(setting: TrainingCalls) -> &'static str {
    match setting {
        TrainingCalls::Keep => "Replies of models are kept as long as their training.",
        TrainingCalls::Drop => "Replies of models are erased after the end of their training.",
    }
}
