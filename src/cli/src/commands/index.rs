//! `callboard index list` and `delete`.

use clap::{Args, Subcommand};
use wire::IndexRecord;

use crate::options::{ClientOptions, InWorkspace, Session, in_workspace};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::parts;
use crate::table;
use crate::terminal::harmless;

/// Manage search indexes. Workflows add and remove their documents.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// List the search indexes of the workspace by name.
    List(List),
    /// Delete a search index with all its documents.
    Delete(Delete),
}

#[derive(Debug, Args)]
pub(crate) struct List {
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Delete {
    /// Name of the index.
    index: String,
    /// Confirm; the documents cannot be restored.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    place: InWorkspace,
    #[command(flatten)]
    options: ClientOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: IndexCommand, outer: ClientOptions) -> (Output, Result<(), Failure>) {
    match command {
        IndexCommand::List(command) => in_workspace!(command, outer),
        IndexCommand::Delete(command) => in_workspace!(command, outer),
    }
}

impl List {
    async fn run(&self, session: &Session) -> Result<(), Failure> {
        let all = parts::all(session, async |part| session.client.indexes(part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        if all.is_empty() {
            complain("No search indexes found. The node `index_upsert` creates one.");
            return Ok(());
        }
        table::print(["NAME", "DOCUMENTS", "CHUNKS", "VECTORS"], all.into_iter().map(row).collect())
    }
}

fn row(index: IndexRecord) -> [String; 4] {
    let vectors = match index.dimensions {
        Some(dimensions) => format!("{} of {dimensions} numbers", index.vectors),
        None => "-".to_owned(),
    };
    [index.name, index.documents.to_string(), index.chunks.to_string(), vectors]
}

impl Delete {
    async fn run(&self, session: &Session) -> Result<(), Failure> {
        let name = harmless(&self.index);
        if !self.yes {
            return Err(Failure::usage(format!(
                "this deletes {name} with all its documents permanently, and workflows find nothing in it; confirm with --yes"
            )));
        }
        session.client.delete_index(&self.index).await.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return Ok(());
        }
        say(format_args!("Deleted search index {name}."))
    }
}
