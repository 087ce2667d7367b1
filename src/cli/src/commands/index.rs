//! `callboard index list` and `delete`.

use clap::{Args, Subcommand};
use wire::IndexRecord;

use crate::options::{ClientOptions, ServiceSession, WorkspaceOptions, with_session};
use crate::output::{CommandError, Output};
use crate::parts;
use crate::table;
use crate::terminal::harmless;

/// Manage search indexes. Workflows add and remove their documents.
#[derive(Debug, Subcommand)]
pub(crate) enum IndexCommand {
    /// List the search indexes of the workspace by name.
    List(ListIndexes),
    /// Delete a search index with all its documents.
    Delete(DeleteIndex),
}

#[derive(Debug, Args)]
pub(crate) struct ListIndexes {
    #[command(flatten)]
    options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteIndex {
    /// Name of the index.
    index: String,
    /// Confirm; the documents cannot be restored.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    options: WorkspaceOptions,
}

/// Returns the outcome, and the output format for errors.
pub(crate) fn run(command: IndexCommand, outer: ClientOptions) -> (Output, Result<(), CommandError>) {
    match command {
        IndexCommand::List(command) => with_session!(command, outer),
        IndexCommand::Delete(command) => with_session!(command, outer),
    }
}

impl ListIndexes {
    async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all = parts::all(session, async |part| session.client.indexes(part).await).await?;
        table::print_list(
            session.output,
            all,
            "No search indexes found. The node `index_upsert` creates one.",
            ["NAME", "DOCUMENTS", "CHUNKS", "VECTORS"],
            row,
        )
    }
}

fn row(index: IndexRecord) -> [String; 4] {
    let vectors = match index.dimensions {
        Some(dimensions) => format!("{} of {dimensions} numbers", index.vectors),
        None => "-".to_owned(),
    };
    [index.name, index.documents.to_string(), index.chunks.to_string(), vectors]
}

impl DeleteIndex {
    async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let name = harmless(&self.index);
        if !self.yes {
            return Err(CommandError::usage(format!(
                "this deletes {name} with all its documents permanently, and workflows find nothing in it; confirm with --yes"
            )));
        }
        session.received(session.client.delete_index(&self.index).await)?;
        session.output.say(format_args!("Deleted search index {name}."))
    }
}
