//! `callboard workflow rollout`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;
use wire::{PutRollout, Rollout, RolloutCanary, VersionCounts};

use super::file::TextFile;
use crate::complaint::Complaint;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, pretty, say};
use crate::terminal::harmless;

/// Manage a rollout.
#[derive(Debug, Subcommand)]
pub(crate) enum RolloutCommand {
    /// Show the live version, the gate and the canary
    Show(ShowRollout),
    /// Set or remove the gate and the canary
    Set(Set),
    /// Make the canary live
    Promote(Promote),
}

#[derive(Debug, Args)]
pub(crate) struct ShowRollout {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// Handle or id of the workflow
    workflow: String,
    /// File with the gate: {"dataset", "evaluators", "threshold", …}
    #[arg(long, value_name = "FILE", conflicts_with = "no_gate")]
    gate: Option<PathBuf>,
    /// Remove the gate
    #[arg(long)]
    no_gate: bool,
    /// Version that a part of the new threads uses
    #[arg(long, value_name = "NUMBER", conflicts_with = "no_canary", requires = "percent")]
    canary: Option<i32>,
    /// Share of the new threads, 1 to 50
    #[arg(long, value_name = "PERCENT", requires = "canary")]
    percent: Option<i32>,
    /// Turns after which the canary becomes live
    #[arg(long, value_name = "TURNS", requires = "canary")]
    promote_after: Option<i32>,
    /// Remove the canary
    #[arg(long)]
    no_canary: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Promote {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ShowRollout {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let rollout = session.received(session.client.rollout(&self.workflow).await)?;
        print(session, &rollout)
    }
}

impl Set {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| session.failed(error);
        // Members without an option are kept; another version is a new canary.
        let known = session.client.rollout(&self.workflow).await.map_err(failed)?;
        let gate = match &self.gate {
            Some(path) => Some(self.read(path)?),
            None => known.gate.filter(|_| !self.no_gate),
        };
        let known = known.canary.filter(|_| !self.no_canary);
        let canary = match self.canary.zip(self.percent) {
            Some((version, percent)) => {
                let same = known.filter(|known| known.version == version);
                let promote_after_turns =
                    self.promote_after.or_else(|| same.and_then(|known| known.promote_after_turns));
                Some(RolloutCanary { version, percent, promote_after_turns })
            }
            None => known.map(|canary| RolloutCanary {
                version: canary.version,
                percent: canary.percent,
                promote_after_turns: canary.promote_after_turns,
            }),
        };
        let rollout = PutRollout { gate, canary };
        let rollout = session.client.put_rollout(&self.workflow, &rollout).await.map_err(failed)?;
        print(session, &rollout)
    }

    fn read(&self, path: &std::path::Path) -> Result<wire::RolloutGate, CommandError> {
        let file = TextFile::read(path)?;
        let gate: Value = file.json()?;
        serde_json::from_value(gate).map_err(|error| {
            let message = format!("{} does not hold a gate: {error}", file.name());
            CommandError::from(Complaint::failed(message).coded("client.invalid_gate"))
        })
    }
}

impl Promote {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let promoted = session.client.promote_canary(&self.workflow).await;
        print(session, &session.received(promoted)?)
    }
}

fn print(session: &ServiceSession, rollout: &Rollout) -> Result<(), CommandError> {
    if session.output == Output::Json {
        return say(pretty(rollout)?);
    }
    match rollout.live_version {
        Some(live) => say(format_args!("live       version {live}")),
        None => say("live       none"),
    }?;
    match &rollout.gate {
        Some(gate) => say(format_args!(
            "gate       dataset {}, score at least {}, at most {} below the live version",
            harmless(&gate.dataset),
            gate.threshold,
            gate.max_drop
        )),
        None => say("gate       none"),
    }?;
    match &rollout.canary {
        Some(canary) => {
            say(format_args!("canary     version {}, {} % of new threads", canary.version, canary.percent))
        }
        None => say("canary     none"),
    }?;
    if let Some(counts) = &rollout.counts {
        say(format_args!("           canary: {}", in_words(counts.canary)))?;
        say(format_args!("           live: {}", in_words(counts.live)))?;
    }
    if let Some(last) = &rollout.last_canary {
        let reason = last.reason.as_deref().map(|reason| format!(": {}", harmless(reason)));
        let outcome = serde_json::to_value(last.outcome).ok();
        let outcome = outcome.as_ref().and_then(Value::as_str).unwrap_or_default().replace('_', " ");
        say(format_args!("           version {} was {outcome}{}", last.version, reason.unwrap_or_default()))?;
    }
    Ok(())
}

fn in_words(counts: VersionCounts) -> String {
    let VersionCounts { turns, failed_turns, ratings, negative_ratings } = counts;
    format!("{turns} turns, {failed_turns} failed; {ratings} ratings, {negative_ratings} negative")
}
