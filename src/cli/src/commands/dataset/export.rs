//! `callboard dataset export`.

use clap::Args;
use client::Part;

use super::DatasetArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, compact, say};

/// Cases per request.
const PART: u32 = 200;

#[derive(Debug, Args)]
pub(crate) struct ExportDataset {
    #[command(flatten)]
    pub(super) named: DatasetArguments,
    /// Version whose cases are printed (default: the latest)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    dataset_version: Option<u32>,
}

impl ExportDataset {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let DatasetArguments { workflow, dataset, .. } = &self.named;
        let failed = |error| CommandError::from(session.complaint(error).about(dataset));
        let latest = session.client.dataset(workflow, dataset).await.map_err(failed)?.version;
        // All pages must come from the same version.
        let version = self.dataset_version.or_else(|| u32::try_from(latest).ok());
        let mut part = Part { limit: Some(PART), cursor: None };
        loop {
            let cases =
                session.client.dataset_cases(workflow, dataset, version, &part).await.map_err(failed)?;
            cases.data.iter().try_for_each(|case| say(compact(case)?))?;
            part.cursor = cases.next_cursor;
            if part.cursor.is_none() {
                return Ok(());
            }
        }
    }
}
