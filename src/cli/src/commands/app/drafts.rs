//! `callboard app bindings` and `collections`.

use std::fmt::Display;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use wire::{BindingRecord, CollectionRecord, CollectionVerb, CreateCollection};

use super::AppArguments;
use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, complain, pretty, say};
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
    Create(Create),
    /// Delete a collection with its records
    Delete(Delete),
}

#[derive(Debug, Args)]
struct Create {
    /// Name of the collection
    name: String,
    /// File with the JSON object {kind, capabilities, schema?}
    #[arg(value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

#[derive(Debug, Args)]
struct Delete {
    /// Name of the collection
    name: String,
    /// Confirm; its records cannot be restored
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

impl Bindings {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let app = &self.named.app;
        let all = parts::all(session, async |part| session.client.app_bindings(app, part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        if all.is_empty() {
            complain("No bindings found. Those of a manifest belong to its deployment.");
            return Ok(());
        }
        let row = |found: BindingRecord| {
            let BindingRecord { name, binding, updated_at, .. } = found;
            [name, binding.workflow, binding.version.to_string(), second(&updated_at)]
        };
        table::print(["NAME", "WORKFLOW", "VERSION", "UPDATED"], all.into_iter().map(row).collect())
    }
}

impl Collections {
    /// Options of the inner command take precedence over those of the outer command.
    pub(super) fn options(&self) -> (ClientOptions, InWorkspace) {
        let (options, place) = match &self.command {
            None => return (self.named.options.clone(), self.named.place.clone()),
            Some(CollectionCommand::Create(create)) => (&create.options, &create.place),
            Some(CollectionCommand::Delete(delete)) => (&delete.options, &delete.place),
        };
        (options.clone().or(self.named.options.clone()), place.clone().or(self.named.place.clone()))
    }

    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let app = &self.named.app;
        match &self.command {
            None => list(session, app).await,
            Some(CollectionCommand::Create(create)) => create.run(session, app).await,
            Some(CollectionCommand::Delete(delete)) => delete.run(session, app).await,
        }
    }
}

async fn list(session: &Session, app: &str) -> Result<(), Failure> {
    let all = parts::all(session, async |part| session.client.app_collections(app, part).await).await?;
    if session.output == Output::Json {
        return say(pretty(&all)?);
    }
    if all.is_empty() {
        complain("No collections found. Those of a manifest belong to its deployment.");
        return Ok(());
    }
    let row = |found: CollectionRecord| {
        let CollectionRecord { name, kind, capabilities, id, .. } = found;
        [name, kind.as_str().to_owned(), verbs(&capabilities.anonymous), verbs(&capabilities.member), id]
    };
    table::print(["NAME", "KIND", "ANONYMOUS", "MEMBER", "ID"], all.into_iter().map(row).collect())
}

fn verbs(verbs: &[CollectionVerb]) -> String {
    let names: Vec<&str> = verbs.iter().map(|verb| verb.as_str()).collect();
    if names.is_empty() { "-".to_owned() } else { names.join(",") }
}

impl Create {
    async fn run(&self, session: &Session, app: &str) -> Result<(), Failure> {
        let unreadable =
            |error: &dyn Display| Failure::usage(format!("{} cannot be read: {error}", self.file.display()));
        let text = std::fs::read_to_string(&self.file).map_err(|error| unreadable(&error))?;
        let mut new: Map<String, Value> = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
        let name = new.entry("name").or_insert_with(|| self.name.clone().into());
        if *name != self.name.as_str() {
            let file = self.file.display();
            return Err(Failure::usage(format!("{file} has the name {name}, and the command {}", self.name)));
        }
        let new: CreateCollection =
            serde_json::from_value(Value::Object(new)).map_err(|error| unreadable(&error))?;
        let made = session.client.create_app_collection(app, &new).await;
        let made = made.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return say(pretty(&made)?);
        }
        say(format_args!("Created collection {} ({}).", made.name, made.id))
    }
}

impl Delete {
    async fn run(&self, session: &Session, app: &str) -> Result<(), Failure> {
        let name = &self.name;
        if !self.yes {
            return Err(Failure::usage(format!(
                "add --yes to delete the collection {name} with its records"
            )));
        }
        let deleted = session.client.delete_app_collection(app, name).await;
        deleted.map_err(|error| session.failed(error))?;
        if session.output == Output::Human {
            complain("Deleted.");
        }
        Ok(())
    }
}
