//! `callboard dataset list`.

use clap::Args;
use wire::DatasetRecord;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
pub(crate) struct ListDatasets {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ListDatasets {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let all =
            parts::all(session, async |part| session.client.datasets(&self.workflow, part).await).await?;
        table::print_list(
            session.output,
            all,
            format_args!(
                "No datasets found. `callboard dataset import {} NAME FILE` creates one.",
                self.workflow
            ),
            ["NAME", "VERSION", "CASES", "UPDATED", "ID"],
            row,
        )
    }
}

fn row(dataset: DatasetRecord) -> [String; 5] {
    let DatasetRecord { name, version, n_cases, updated_at, id, .. } = dataset;
    [name, version.to_string(), n_cases.to_string(), second(&updated_at), id]
}
