//! `callboard dataset list`.

use clap::Args;
use wire::DatasetRecord;

use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl List {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let all =
            parts::all(session, async |part| session.client.datasets(&self.workflow, part).await).await?;
        if session.output == Output::Json {
            return say(pretty(&all)?);
        }
        if all.is_empty() {
            complain(format_args!(
                "No datasets found. `callboard dataset import {} NAME FILE` creates one.",
                self.workflow
            ));
            return Ok(());
        }
        table::print(["NAME", "VERSION", "CASES", "UPDATED", "ID"], all.into_iter().map(row).collect())
    }
}

fn row(dataset: DatasetRecord) -> [String; 5] {
    let DatasetRecord { name, version, n_cases, updated_at, id, .. } = dataset;
    [name, version.to_string(), n_cases.to_string(), second(&updated_at), id]
}
