//! `callboard dataset delete`.

use clap::Args;

use super::DatasetArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, complain};

#[derive(Debug, Args)]
pub(crate) struct DeleteDataset {
    #[command(flatten)]
    pub(super) named: DatasetArguments,
    /// Confirm; its name and its versions cannot be restored
    #[arg(long)]
    yes: bool,
}

impl DeleteDataset {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let DatasetArguments { workflow, dataset, .. } = &self.named;
        if !self.yes {
            return Err(CommandError::usage(format!(
                "add --yes to delete the dataset {dataset} with all its versions"
            )));
        }
        let deleted = session.client.delete_dataset(workflow, dataset).await;
        deleted.map_err(|error| session.complaint(error).about(dataset))?;
        if session.output == Output::Human {
            complain("Deleted.");
        }
        Ok(())
    }
}
