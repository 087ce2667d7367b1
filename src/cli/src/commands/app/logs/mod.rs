//! `callboard app logs`.

mod follow;

use clap::{Args, ValueEnum};
use client::{AppRunsFilter, Part};
use wire::{AppRunRecord, AppRunState};

use super::AppArguments;
use crate::commands::run::seconds;
use crate::commands::signals::Interrupts;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, compact, complain, reader_gone, say};
use crate::parts;
use crate::table::second;
use crate::terminal::harmless;
use follow::Follower;

#[derive(Debug, Args)]
#[command(
    after_help = "Each line is a run: time of acceptance, state, beginning of the handle, visitor, binding and id. \
                        With --follow a run has another line when its state changes.\n\n\
                        Examples:\n  callboard app logs menu --state failed,timed_out\n  \
                        callboard app logs menu --follow --binding ask --output json"
)]
pub(crate) struct Logs {
    #[command(flatten)]
    pub(super) named: AppArguments,
    /// Print runs as they start and end, until Ctrl-C
    #[arg(long, short)]
    follow: bool,
    /// Only runs in these states
    #[arg(long, value_enum, value_delimiter = ',')]
    state: Vec<RunStateArgument>,
    /// Only runs of this binding
    #[arg(long, value_name = "NAME")]
    binding: Option<String>,
    /// Maximum number of earlier runs to print
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    limit: u32,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum RunStateArgument {
    Queued,
    Running,
    Succeeded,
    Failed,
    #[value(name = "timed_out", alias = "timed-out")]
    TimedOut,
    Cancelled,
}

impl From<RunStateArgument> for AppRunState {
    fn from(state: RunStateArgument) -> Self {
        match state {
            RunStateArgument::Queued => Self::Queued,
            RunStateArgument::Running => Self::Running,
            RunStateArgument::Succeeded => Self::Succeeded,
            RunStateArgument::Failed => Self::Failed,
            RunStateArgument::TimedOut => Self::TimedOut,
            RunStateArgument::Cancelled => Self::Cancelled,
        }
    }
}

impl Logs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        if !self.follow {
            let runs = self.newest(session).await?;
            if runs.is_empty() && session.output == Output::Human {
                complain("No runs found.");
            }
            return runs.iter().try_for_each(|run| line(run, session.output));
        }
        let mut interrupts = Interrupts::listen()?;
        tokio::select! {
            ended = self.follow(session) => ended,
            () = interrupts.told() => Err(CommandError::Interrupted),
            () = reader_gone() => Err(CommandError::ReaderGone),
        }
    }

    async fn follow(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let mut follower = Follower::start(session, &self.named.app, self.filter()).await?;
        for run in self.newest(session).await? {
            line(&run, session.output)?;
            follower.note(&run);
        }
        loop {
            follower.wait().await;
            for run in follower.changed().await? {
                line(&run, session.output)?;
            }
        }
    }

    /// The newest runs, in ascending order.
    async fn newest(&self, session: &ServiceSession) -> Result<Vec<AppRunRecord>, CommandError> {
        let filter = self.filter();
        let read = async |part: &Part| {
            let page = session.client.app_runs(&self.named.app, &filter, part).await;
            session.received(page)
        };
        let mut runs = parts::at_most(self.limit, read).await?;
        runs.reverse();
        Ok(runs)
    }

    fn filter(&self) -> AppRunsFilter {
        let states = self.state.iter().map(|state| AppRunState::from(*state)).collect();
        AppRunsFilter { states, binding: self.binding.clone() }
    }
}

fn line(run: &AppRunRecord, output: Output) -> Result<(), CommandError> {
    match output {
        Output::Json => say(compact(run)?),
        Output::Human => say(text(run)),
    }
}

fn text(run: &AppRunRecord) -> String {
    let (state, visitor) = (run.state.as_str(), run.visitor.as_str());
    let took = run.finished_at.as_ref().map(|at| format!("  {}", seconds(&run.created_at, at)));
    let error = run.error.as_ref().map(|error| format!("  {}", harmless(&error.code)));
    format!(
        "{}  {state:<9}  {}  {visitor:<9}  {}  {}{}{}",
        second(&run.created_at),
        harmless(&run.handle_prefix),
        harmless(&run.binding),
        harmless(&run.id),
        took.unwrap_or_default(),
        error.unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use wire::{AppRunError, AppVisitor};

    use super::*;

    #[test]
    fn each_run_is_a_line() {
        let mut run = AppRunRecord {
            id: "0198c310-2b40-7e11-8a52-6d5c4b3a2918".into(),
            handle_prefix: "run_q3VtZ0pX".into(),
            binding: "ask".into(),
            state: AppRunState::Running,
            release_id: "r".into(),
            visitor: AppVisitor::Member,
            created_at: "2026-11-22T09:20:00.000000Z".into(),
            finished_at: None,
            error: None,
        };
        let begun = "2026-11-22 09:20:00Z  running    run_q3VtZ0pX  member     ask  0198c310-2b40-7e11-8a52-6d5c4b3a2918";
        assert_eq!(text(&run), begun);
        run.state = AppRunState::TimedOut;
        run.finished_at = Some("2026-11-22T09:20:01.250000Z".into());
        run.error = Some(AppRunError { code: "run.timeout".into() });
        assert_eq!(text(&run), format!("{}  1.25 s  run.timeout", begun.replace("running  ", "timed_out")));
    }
}
