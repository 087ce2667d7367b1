//! `callboard runs list`.

use clap::{Args, ValueEnum};
use client::{Part, RunsFilter};
use wire::RunSummary;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::parts;
use crate::table::{self, second};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  callboard runs list --status failed --limit 5\n  \
                        callboard runs list --workflow support --status waiting,running")]
pub(crate) struct ListRuns {
    /// Only in these states.
    #[arg(long, value_enum, value_delimiter = ',')]
    status: Vec<Status>,
    /// Only of this workflow: its handle or id.
    #[arg(long, value_name = "WORKFLOW")]
    workflow: Option<String>,
    /// Only started by these triggers.
    #[arg(long, value_enum, value_delimiter = ',')]
    trigger: Vec<Trigger>,
    /// Only created at this time or later, such as 2026-11-23T09:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Only created before this time.
    #[arg(long, value_name = "TIME")]
    to: Option<String>,
    /// Only runs that wait for an answer.
    #[arg(long)]
    waits: bool,
    /// Maximum number of runs to print.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Status {
    Queued,
    Running,
    Waiting,
    Succeeded,
    Failed,
    Cancelled,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Trigger {
    Api,
    Websocket,
    App,
    Chat,
    Action,
    Cron,
    Webhook,
    Rerun,
    Training,
    Evaluation,
    Gate,
}

impl ListRuns {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let runs = self.runs(session).await?;
        table::print_list(
            session.output,
            runs,
            "No runs found.",
            ["ID", "CREATED", "WORKFLOW", "VERSION", "TRIGGER", "STATUS", "ERROR"],
            row,
        )
    }

    async fn runs(&self, session: &ServiceSession) -> Result<Vec<RunSummary>, CommandError> {
        let workflow = match &self.workflow {
            Some(name) => {
                let found = session.client.workflow(name).await;
                Some(found.map_err(|error| session.complaint(error).about(name))?.id)
            }
            None => None,
        };
        let filter = RunsFilter {
            status: names(&self.status),
            trigger: names(&self.trigger),
            workflow,
            thread: None,
            from: self.from.clone(),
            to: self.to.clone(),
            waits: self.waits.then_some(true),
        };
        let read =
            async |part: &Part| session.received(session.client.runs_of_workspace(&filter, part).await);
        parts::at_most(self.limit, read).await
    }
}

fn names<T: ValueEnum>(chosen: &[T]) -> Vec<String> {
    chosen.iter().filter_map(|one| Some(one.to_possible_value()?.get_name().to_owned())).collect()
}

fn row(run: RunSummary) -> [String; 7] {
    let status = if run.waits { "waiting for an answer" } else { run.status.as_str() };
    [
        run.id,
        second(&run.created_at),
        run.workflow_handle,
        run.version.map_or_else(|| "draft".to_owned(), |number| number.to_string()),
        run.trigger,
        status.to_owned(),
        run.error
            .or(run.warning)
            .map(|error| format!("{} ({})", error.message, error.code))
            .unwrap_or_default(),
    ]
}
