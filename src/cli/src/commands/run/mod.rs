//! `callboard run`: starts a run, watches it and prints its result.

pub(super) mod inputs;
mod watcher;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use client::{ClientError, RunOptions, StartedRun, TransportFault};
use kernel::{Clock, SystemClock};
use wire::{CreateRun, RunRecord, RunState};

use super::signals::Interrupts;
use crate::complaint::Complaint;
use crate::options::{PresentedCredential, ServiceSession, WorkspaceOptions, new_key};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless, stdout_is_seen};
use watcher::Watcher;
pub(crate) use watcher::seconds;

/// Maximum attempts to start a run whose response was lost; the same key always means the same run.
pub(super) const ATTEMPTS: u32 = 4;
pub(super) const PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
// `--version` selects the workflow's version here.
#[command(
    disable_version_flag = true,
    after_help = "Ctrl-C cancels the run; a second Ctrl-C stops waiting.\n\
                        The result of the run goes to standard output; everything else goes to standard error."
)]
pub(crate) struct Run {
    /// Handle or id of the workflow.
    workflow: String,
    /// An input. The value is parsed as JSON unless it is not JSON or the graph requires a string.
    #[arg(long = "input", value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// A file with a JSON object of inputs; `-` is standard input. --input takes precedence.
    #[arg(long = "inputs", value_name = "FILE")]
    file: Option<PathBuf>,
    /// The version to run (default: the live version).
    #[arg(long, value_name = "N")]
    version: Option<i32>,
    /// Seconds until the run fails.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<f64>,
    /// Print only the result of the run.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) options: WorkspaceOptions,
}

impl Run {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let inputs = inputs::read(&self.pairs, self.file.as_deref())?;
        let inputs = inputs.fit(session, &self.workflow, self.version).await?;
        let mut interrupts = Interrupts::listen()?;
        let wanted = CreateRun {
            inputs: Some(inputs),
            version: self.version,
            timeout_seconds: self.timeout,
            ..CreateRun::default()
        };
        let run = self.begin(session, &wanted).await?.run;
        follow(session, &run.id, self.quiet, &mut interrupts).await
    }

    /// Starts the run; retries with the same key if the response is lost.
    async fn begin(&self, session: &ServiceSession, wanted: &CreateRun) -> Result<StartedRun, CommandError> {
        let options = RunOptions { wait: None, idempotency_key: Some(new_key()?) };
        let mut attempt = 1;
        loop {
            match session.client.begin_run(&self.workflow, wanted, &options).await {
                Ok(begun) => return Ok(begun),
                Err(error) if attempt < ATTEMPTS && may_have_begun(&error, attempt) => {}
                Err(error) => return Err(session.complaint(error).about(&self.workflow).into()),
            }
            attempt += 1;
            SystemClock::new().sleep(PAUSE).await;
        }
    }
}

/// Watches a run to its end and prints its result.
pub(super) async fn follow(
    session: &ServiceSession,
    run: &str,
    quiet: bool,
    interrupts: &mut Interrupts,
) -> Result<(), CommandError> {
    let silent = quiet || session.output == Output::Json;
    let cancelled = watch(session, run, Watcher::new(silent), interrupts).await?;
    let record = session.received(session.client.run(run).await)?;
    conclude(session, &record, quiet, cancelled)
}

fn conclude(
    session: &ServiceSession,
    run: &RunRecord,
    quiet: bool,
    cancelled: bool,
) -> Result<(), CommandError> {
    let human = session.output == Output::Human;
    let asks = match session.sent {
        PresentedCredential::Nothing => "",
        PresentedCredential::Token { .. } => " (with the token)",
    };
    let trace = format!("{}/api/runs/{}/trace{asks}", session.base(), run.id);
    if !human {
        say(pretty(run)?)?;
    } else if run.status == RunState::Succeeded {
        if !quiet {
            complain(Paint::stderr().dim(format_args!("Done{}. Every step: {trace}", watcher::took(run))));
        }
        if let Some(warning) = &run.warning {
            let node = warning.node.as_deref().map(|node| format!(" before {node}")).unwrap_or_default();
            let text = format!("{} ({}{node})", warning.message, warning.code);
            complain(format_args!("{} {}", Paint::stderr().warning("warning:"), harmless(&text)));
        }
        let output = pretty(&run.output)?;
        if stdout_is_seen() { say(harmless(&output)) } else { say(output) }?;
    }
    match run.status {
        RunState::Succeeded => Ok(()),
        RunState::Cancelled if cancelled => {
            if human {
                complain(format_args!("Cancelled. Steps so far: {trace}"));
            }
            Err(CommandError::Interrupted)
        }
        _ if !human => Err(CommandError::Said),
        _ => Err(failed(run).hint(format!("Every step: {trace}")).into()),
    }
}

/// Whether to retry. A failed connection is final on the first attempt.
pub(super) fn may_have_begun(error: &ClientError, attempt: u32) -> bool {
    match error {
        ClientError::Transport { fault: TransportFault::Connect, .. } => attempt > 1,
        ClientError::Transport { .. } => true,
        _ => false,
    }
}

fn failed(run: &RunRecord) -> Complaint {
    match &run.error {
        Some(problem) => {
            let node = problem.node.as_deref().map(|node| format!(" in {node}")).unwrap_or_default();
            let message = format!("The run failed{}: {}", harmless(&node), problem.message);
            Complaint::told(message, Some(problem.code.clone()))
        }
        None => Complaint::failed(format!("The run is {}.", run.status.as_str())),
    }
}

/// Watches a run to its end; returns whether it was cancelled here.
async fn watch(
    session: &ServiceSession,
    id: &str,
    mut watcher: Watcher,
    interrupts: &mut Interrupts,
) -> Result<bool, CommandError> {
    let mut events = session.client.follow_run(id, None);
    let mut cancelled = false;
    let look = format!("The run continues: {}/api/runs/{id}", session.base());
    loop {
        let told = tokio::select! {
            event = events.next() => Some(event),
            () = interrupts.told() => None,
        };
        match told {
            Some(Ok(Some(event))) => watcher.take(&event.event),
            Some(Ok(None)) => return Ok(cancelled),
            Some(Err(error)) => {
                watcher.finish();
                return Err(session.complaint(error).hint(look).into());
            }
            None if cancelled => {
                watcher.finish();
                complain(look);
                return Err(CommandError::Interrupted);
            }
            None => {
                cancelled = true;
                watcher.note("Cancelling …");
                let outcome = tokio::select! {
                    outcome = session.client.cancel_run(id) => outcome,
                    () = interrupts.told() => {
                        watcher.finish();
                        complain(look);
                        return Err(CommandError::Interrupted);
                    }
                };
                outcome.map_err(|error| CommandError::from(session.complaint(error).hint(look.clone())))?;
            }
        }
    }
}
