//! `callboard dataset add`: adds a run as a case.

use clap::Args;
use serde_json::Value;
use wire::KeepRunAsCase;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, say};

#[derive(Debug, Args)]
pub(crate) struct Add {
    /// Id of a run that has ended
    run: String,
    /// Name or id of a dataset of the run's workflow
    #[arg(long, value_name = "DATASET")]
    dataset: String,
    /// Expected output: JSON, or else text (default: the run's output)
    #[arg(long, value_name = "OUTPUT")]
    expected: Option<String>,
    /// Split of the case (default: drawn by the training)
    #[arg(long, value_name = "SPLIT", value_parser = ["train", "val", "test"])]
    split: Option<String>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Add {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = KeepRunAsCase {
            dataset: self.dataset.clone(),
            expected_output: self.expected.as_deref().map(value),
            split: self.split.clone(),
        };
        let kept = session.client.keep_run_as_case(&self.run, &wanted).await;
        let (kept, is_new) = kept.map_err(|error| session.complaint(error).about(&self.run))?;
        let what = if is_new { "Added to the dataset as" } else { "Already in the dataset:" };
        session.output.print(&kept, || say(format_args!("{what} version {}.", kept.version)))
    }
}

/// Parses JSON, or else takes the text itself.
fn value(text: &str) -> Value {
    kernel::json::read(text, kernel::json::Numbers::Values).unwrap_or_else(|_| Value::String(text.to_owned()))
}
