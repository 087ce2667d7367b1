//! `callboard app bindings` and `collections`.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use wire::{BindingRecord, CollectionRecord, CollectionVerb, CreateCollection};

use super::AppArguments;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, say};
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
pub(crate) struct Bindings {
    #[command(flatten)]
    pub(super) named: AppArguments,
}

#[derive(Debug, Args)]
pub(crate) struct Collections {
    #[command(flatten)]
    pub(super) named: AppArguments,
    #[command(subcommand)]
    command: Option<CollectionCommand>,
}

/// Manage the collections of an app.
#[derive(Debug, Subcommand)]
enum CollectionCommand {
    /// Create a collection
    Create(CreateCollectionArgs),
    /// Delete a collection with its records
    Delete(DeleteCollection),
}

#[derive(Debug, Args)]
struct CreateCollectionArgs {
    /// Name of the collection
    name: String,
    /// File with the JSON object {kind, capabilities, schema?}
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    options: WorkspaceOptions,
}

#[derive(Debug, Args)]
struct DeleteCollection {
    /// Name of the collection
    name: String,
    /// Confirm; its records cannot be restored
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    options: WorkspaceOptions,
}

impl Bindings {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        let all = parts::all(session, async |part| session.client.app_bindings(app, part).await).await?;
        let row = |found: BindingRecord| {
            let BindingRecord { name, binding, updated_at, .. } = found;
            [name, binding.workflow, binding.version.to_string(), second(&updated_at)]
        };
        table::print_list(
            session.output,
            all,
            "No bindings found. Those of a manifest belong to its deployment.",
            ["NAME", "WORKFLOW", "VERSION", "UPDATED"],
            row,
        )
    }
}

impl Collections {
    /// Options of the inner command take precedence over those of the outer command.
    pub(super) fn options(&self) -> WorkspaceOptions {
        let inner = match &self.command {
            None => return self.named.options.clone(),
            Some(CollectionCommand::Create(create)) => &create.options,
            Some(CollectionCommand::Delete(delete)) => &delete.options,
        };
        inner.clone().or_workspace(self.named.options.clone())
    }

    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let app = &self.named.app;
        match &self.command {
            None => list(session, app).await,
            Some(CollectionCommand::Create(create)) => create.run(session, app).await,
            Some(CollectionCommand::Delete(delete)) => delete.run(session, app).await,
        }
    }
}

async fn list(session: &ServiceSession, app: &str) -> Result<(), CommandError> {
    let all = parts::all(session, async |part| session.client.app_collections(app, part).await).await?;
    let row = |found: CollectionRecord| {
        let CollectionRecord { name, kind, capabilities, id, .. } = found;
        [name, kind.as_str().to_owned(), verbs(&capabilities.anonymous), verbs(&capabilities.member), id]
    };
    let if_empty = "No collections found. Those of a manifest belong to its deployment.";
    table::print_list(session.output, all, if_empty, ["NAME", "KIND", "ANONYMOUS", "MEMBER", "ID"], row)
}

fn verbs(verbs: &[CollectionVerb]) -> String {
    let names: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

impl CreateCollectionArgs {
    async fn run(&self, session: &ServiceSession, app: &str) -> Result<(), CommandError> {
        let unreadable = |error: &dyn Display| {
            CommandError::usage(format!("{} cannot be read: {error}", self.file.display()))
        };
        let text = std::fs::read_to_string(&self.file).map_err(|error| unreadable(&error))?;
        let mut new: Map<String, Value> = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        let name = new.entry("name").or_insert_with(|| self.name.clone().into());
        if *name != self.name.as_str() {
            let file = self.file.display();
            return Err(CommandError::usage(format!(
                "{file} has the name {name}, and the command {}",
                self.name
            )));
        }
        let new: CreateCollection =
            serde_json::from_value(Value::Object(new)).map_err(|error| unreadable(&error))?;
        let made = session.received(session.client.create_app_collection(app, &new).await)?;
        session.output.print(&made, || say(format_args!("Created collection {} ({}).", made.name, made.id)))
    }
}

impl DeleteCollection {
    async fn run(&self, session: &ServiceSession, app: &str) -> Result<(), CommandError> {
        let name = &self.name;
        if !self.yes {
            return Err(CommandError::usage(format!(
                "add --yes to delete the collection {name} with its records"
            )));
        }
        session.received(session.client.delete_app_collection(app, name).await)?;
        if session.output == Output::Human {
            complain("Deleted.");
        }
        Ok(())
    }
}
