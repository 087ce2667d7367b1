//! `callboard runs show`.

use clap::Args;
use wire::{RunRecord, RunState};

use crate::commands::answer;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, pretty, say};
use crate::table::second;
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct ShowRun {
    /// Id of the run.
    run: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl ShowRun {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let found = session.client.run(&self.run).await;
        let run = found.map_err(|error| session.complaint(error).about(&self.run))?;
        session.output.print(&run, || show(&run))
    }
}

pub(super) fn show(run: &RunRecord) -> Result<(), CommandError> {
    let line = |name: &str, value: &str| say(format_args!("{name:<10} {}", harmless(value)));
    line("run", &run.id)?;
    let version = run.version.map_or_else(|| "draft".to_owned(), |number| format!("version {number}"));
    line("workflow", &format!("{} ({version})", run.workflow_id))?;
    line("trigger", &run.trigger)?;
    line("status", run.status.as_str())?;
    line("created", &second(&run.created_at))?;
    if let Some(at) = &run.started_at {
        line("started", &second(at))?;
    }
    if let Some(at) = &run.finished_at {
        line("finished", &second(at))?;
    }
    if let Some(origin) = &run.origin_run_id {
        line("rerun of", origin)?;
    }
    for question in &run.waits_for {
        say(format_args!("waits for  {}", answer::line(question)))?;
    }
    if let Some(at) = &run.resumes_at {
        line(if run.waits_for.is_empty() { "resumes at" } else { "resumes by" }, &second(at))?;
    }
    if let Some(error) = &run.error {
        let node = error.node.as_deref().map(|node| format!("{node}: ")).unwrap_or_default();
        line("error", &format!("{node}{} ({})", error.message, error.code))?;
    }
    if let Some(warning) = &run.warning {
        let node = warning.node.as_deref().map(|node| format!("{node}: ")).unwrap_or_default();
        line("warning", &format!("{node}{} ({})", warning.message, warning.code))?;
    }
    line("inputs", &pretty(&run.inputs)?)?;
    if run.status == RunState::Succeeded {
        line("output", &pretty(&run.output)?)?;
    }
    Ok(())
}
