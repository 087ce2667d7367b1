//! `callboard trigger show`.

use clap::Args;
use client::{ClientError, Part, RunsFilter};
use serde::Serialize;
use wire::{CronRecord, MissedFires, RunSummary, SignatureScheme, WebhookRecord};

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::table::second;
use crate::terminal::harmless;

/// Maximum runs to print.
const LAST_RUNS: u32 = 5;

#[derive(Debug, Args)]
pub(crate) struct ShowTriggers {
    /// Handle or id of the workflow.
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// A workflow's triggers; null means not configured.
#[derive(Serialize)]
struct Triggers {
    cron: Option<CronRecord>,
    webhook: Option<WebhookRecord>,
    /// The latest runs that they started.
    runs: Vec<RunSummary>,
}

impl ShowTriggers {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| session.failed(error);
        // The service reports a missing workflow's triggers as missing, too.
        let workflow = session.client.workflow(&self.workflow).await.map_err(failed)?;
        let cron = if_any(session.client.cron(&workflow.id).await).map_err(failed)?;
        let webhook = if_any(session.client.webhook(&workflow.id).await).map_err(failed)?;
        let filter = RunsFilter {
            workflow: Some(workflow.id.clone()),
            trigger: vec!["cron".to_owned(), "webhook".to_owned()],
            ..RunsFilter::default()
        };
        let last = Part { limit: Some(LAST_RUNS), cursor: None };
        let runs = session.client.runs_of_workspace(&filter, &last).await.map_err(failed)?.data;
        if session.output == Output::Json {
            return say(pretty(&Triggers { cron, webhook, runs })?);
        }
        if cron.is_none() && webhook.is_none() {
            complain(
                "No triggers found. `callboard trigger cron` and `callboard trigger webhook` create one.",
            );
            return Ok(());
        }
        if let Some(record) = &cron {
            self::cron(record)?;
        }
        if let Some(record) = &webhook {
            self::webhook(record, &address(session, &workflow.id))?;
        }
        runs.iter().try_for_each(run)
    }
}

/// Prints a run's outcome and error.
fn run(run: &RunSummary) -> Result<(), CommandError> {
    let why = run.error.as_ref().map(|error| format!(": {} ({})", error.message, error.code));
    let (at, id) = (second(&run.created_at), harmless(&run.id));
    let ended = format!("{}{}", run.status.as_str(), why.unwrap_or_default());
    say(format_args!("{:<10} {at} {id} {}", harmless(&run.trigger), harmless(&ended)))
}

/// A trigger, or `None` if it is not configured.
pub(super) fn if_any<T>(answer: Result<T, ClientError>) -> Result<Option<T>, ClientError> {
    match answer {
        Err(error) if error.code() == Some("trigger.not_found") => Ok(None),
        answer => answer.map(Some),
    }
}

/// A webhook's URL.
pub(super) fn address(session: &ServiceSession, workflow: &str) -> String {
    format!("{}/api/workflows/{}/triggers/webhook", session.base(), harmless(workflow))
}

pub(super) fn cron(record: &CronRecord) -> Result<(), CommandError> {
    let config = &record.config;
    say(format_args!("schedule   {} in {}", harmless(&config.expression), harmless(&config.timezone)))?;
    match &record.next_fire_at {
        Some(at) => say(format_args!("next       {}", second(at))),
        None => say("next       never: it is off"),
    }?;
    if config.overlap {
        say("overlap    yes")?;
    }
    if config.missed == MissedFires::Once {
        say("missed     one run for all")?;
    }
    if let (Some(run), Some(at)) = (&record.last_run_id, &record.last_scheduled_for) {
        say(format_args!("last run   {} {}", second(at), harmless(run)))?;
    }
    if let Some(skip) = &record.last_skipped {
        say(format_args!("left out   {} ({})", second(&skip.scheduled_for), harmless(&skip.reason)))?;
    }
    if let Some(error) = &record.last_error {
        let (message, code) = (harmless(&error.message), harmless(&error.code));
        say(format_args!("failed     {} {message} ({code})", second(&error.scheduled_for)))?;
    }
    Ok(())
}

pub(super) fn webhook(record: &WebhookRecord, address: &str) -> Result<(), CommandError> {
    let config = &record.config;
    say(format_args!("webhook    {} {address}", harmless(&config.allowed_methods.join(", "))))?;
    if let Some(header) = &config.shared_secret_header {
        say(format_args!("secret     in the header {}", harmless(header)))?;
    }
    if let Some(header) = &config.hmac_header {
        let header = harmless(header);
        let signed = match (&config.hmac_timestamp_header, config.signature_scheme) {
            (_, SignatureScheme::Slack) => "in Slack's format".to_owned(),
            (Some(time), SignatureScheme::Plain) => {
                format!("HMAC-SHA-256 of \"<time>.<body>\", the time in {}", harmless(time))
            }
            (None, SignatureScheme::Plain) => "HMAC-SHA-256 of the body".to_owned(),
        };
        say(format_args!("signature  in the header {header}: {signed}"))?;
    }
    if config.shared_secret_header.is_none() && config.hmac_header.is_none() {
        say("open       the address alone starts runs")?;
    }
    if let Some(header) = &config.delivery_id_header {
        say(format_args!(
            "delivery   {} identifies it: repeated deliveries start one run",
            harmless(header)
        ))?;
    }
    match &config.rate_limit {
        Some(rate) => say(format_args!("at most    {} calls in {} s", rate.limit, rate.interval_seconds)),
        None => Ok(()),
    }
}
