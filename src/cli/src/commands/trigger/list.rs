//! `callboard trigger list`.

use clap::Args;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde::Serialize;
use wire::{CronRecord, WebhookRecord, WorkflowRecord};

use super::show::if_any;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::table::{self, second};

/// Maximum workflows read concurrently.
const AT_ONCE: usize = 8;

#[derive(Debug, Args)]
pub(crate) struct ListTriggers {
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// A workflow's triggers; null means not configured.
#[derive(Serialize)]
struct WorkflowTriggers {
    workflow_id: String,
    workflow_handle: String,
    cron: Option<CronRecord>,
    webhook: Option<WebhookRecord>,
}

impl ListTriggers {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let workflows = session.received(session.client.workflows().await)?;
        let found: Vec<WorkflowTriggers> = stream::iter(workflows)
            .map(|workflow| triggers(session, workflow))
            .buffered(AT_ONCE)
            .try_collect()
            .await?;
        let found: Vec<WorkflowTriggers> =
            found.into_iter().filter(|one| one.cron.is_some() || one.webhook.is_some()).collect();
        if session.output == Output::Json {
            return say(pretty(&found)?);
        }
        if found.is_empty() {
            complain(
                "No triggers found. `callboard trigger cron` and `callboard trigger webhook` create one.",
            );
            return Ok(());
        }
        table::print(
            ["WORKFLOW", "TRIGGER", "STARTS", "NEXT", "ERROR"],
            found.iter().flat_map(rows).collect(),
        )
    }
}

async fn triggers(
    session: &ServiceSession,
    workflow: WorkflowRecord,
) -> Result<WorkflowTriggers, CommandError> {
    let failed = |error| session.failed(error);
    Ok(WorkflowTriggers {
        cron: if_any(session.client.cron(&workflow.id).await).map_err(failed)?,
        webhook: if_any(session.client.webhook(&workflow.id).await).map_err(failed)?,
        workflow_id: workflow.id,
        workflow_handle: workflow.handle,
    })
}

fn rows(one: &WorkflowTriggers) -> Vec<[String; 5]> {
    let cron = one.cron.as_ref().map(|cron| {
        let error = cron.last_error.as_ref().map(|error| format!("{} ({})", error.message, error.code));
        [
            one.workflow_handle.clone(),
            "cron".to_owned(),
            format!("{} in {}", cron.config.expression, cron.config.timezone),
            cron.next_fire_at.as_deref().map_or_else(|| "never".to_owned(), second),
            error.unwrap_or_default(),
        ]
    });
    let webhook = one.webhook.as_ref().map(|webhook| {
        [
            one.workflow_handle.clone(),
            "webhook".to_owned(),
            webhook.config.allowed_methods.join(", "),
            String::new(),
            String::new(),
        ]
    });
    cron.into_iter().chain(webhook).collect()
}
