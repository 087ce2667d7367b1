//! `callboard report`: shows whether a training has improved the prompts.

use clap::{Args, ValueEnum};
use wire::TrainingReport;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, piece, pretty, say};

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ReportFormat {
    /// Lines of 80 columns
    Text,
    /// All numbers and texts
    Json,
    /// A page without scripts
    Html,
    /// The curve of the scores as a picture
    Svg,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Example:\n  callboard report 0198c2f4-0000-7c88-9d21-3f4a5b6c7d8e --format html > report.html"
)]
pub(crate) struct Report {
    /// Id of a training or an evaluation
    run: String,
    /// Format of the report (default: text, or json with --output json)
    #[arg(long, value_enum)]
    format: Option<ReportFormat>,
    #[command(flatten)]
    pub(crate) options: WorkspaceOptions,
}

impl Report {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let (client, run) = (&session.client, &self.run);
        let failed = |error| CommandError::from(session.complaint(error).about(run));
        let workflow = client.workflow_of_run(run).await.map_err(failed)?;
        let format = self.format.unwrap_or(match session.output {
            Output::Json => ReportFormat::Json,
            Output::Human => ReportFormat::Text,
        });
        match format {
            ReportFormat::Json => {
                say(pretty(&client.training_report(&workflow, run).await.map_err(failed)?)?)
            }
            ReportFormat::Text => {
                let report = client.training_report(&workflow, run).await.map_err(failed)?;
                let report = serde_json::from_value::<TrainingReport>(report)
                    .map_err(|error| format!("the report cannot be read: {error}"))?;
                piece(training::report::text(&report))
            }
            ReportFormat::Html => piece(client.training_report_page(&workflow, run).await.map_err(failed)?),
            ReportFormat::Svg => piece(client.training_curve(&workflow, run).await.map_err(failed)?),
        }
    }
}
