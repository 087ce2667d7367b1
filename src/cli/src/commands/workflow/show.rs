//! `callboard workflow show`.

use clap::Args;
use client::Part;
use serde::Serialize;
use serde_json::{Map, Value};
use wire::{VersionSummary, WorkflowRecord};

use super::list::chat;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, pretty, say};
use crate::terminal::{Paint, harmless};

/// Maximum versions to print.
const VERSIONS: u32 = 20;

#[derive(Debug, Args)]
// `--version` selects the workflow's version here.
#[command(disable_version_flag = true)]
pub(crate) struct ShowWorkflow {
    /// Handle or id of the workflow.
    workflow: String,
    /// Print this version in the format of `callboard workflow upload`.
    #[arg(long, value_name = "N")]
    version: Option<i32>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// A file for `callboard workflow upload`.
#[derive(Serialize)]
struct VersionFile {
    graph: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    runnable_config: Option<Map<String, Value>>,
}

impl ShowWorkflow {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| session.failed(error);
        if let Some(number) = self.version {
            let version = session.client.version(&self.workflow, number).await.map_err(failed)?;
            if session.output == Output::Json {
                return say(pretty(&version)?);
            }
            let file = VersionFile { graph: version.graph, runnable_config: version.runnable_config };
            return say(pretty(&file)?);
        }
        let workflow = session.client.workflow(&self.workflow).await.map_err(failed)?;
        if session.output == Output::Json {
            return say(pretty(&workflow)?);
        }
        let part = Part { limit: Some(VERSIONS), cursor: None };
        let versions = session.client.versions(&self.workflow, &part).await.map_err(failed)?;
        record(&workflow)?;
        for version in &versions.data {
            line(&workflow, version)?;
        }
        match versions.next_cursor {
            Some(_) => say(format_args!("           and older ones; only the newest {VERSIONS} are shown")),
            None => Ok(()),
        }?;
        if let Some(number) = workflow.latest_version {
            let base = session.base();
            say(format_args!(
                "diagram    {base}/api/workflows/{}/versions/{number}/diagram.svg",
                workflow.handle
            ))?;
        }
        Ok(())
    }
}

fn record(workflow: &WorkflowRecord) -> Result<(), CommandError> {
    let paint = Paint::stdout();
    say(paint.bold(harmless(&workflow.name)))?;
    if let Some(description) = &workflow.description {
        say(harmless(description))?;
    }
    say(format_args!("handle     {}", workflow.handle))?;
    say(format_args!("id         {}", workflow.id))?;
    if !workflow.tags.is_empty() {
        say(format_args!("tags       {}", harmless(&workflow.tags.join(", "))))?;
    }
    match &workflow.share_url {
        Some(url) => say(format_args!("chat       {} {url}", chat(workflow))),
        None => say(format_args!("chat       {}", chat(workflow))),
    }?;
    match (workflow.live_version, workflow.latest_version) {
        (_, None) => say("versions   none"),
        (None, Some(_)) => say("live       none: no version has passed the gate"),
        (Some(live), latest) if latest != Some(live) => say(format_args!("live       version {live}")),
        _ => Ok(()),
    }
}

fn line(workflow: &WorkflowRecord, version: &VersionSummary) -> Result<(), CommandError> {
    let newest = workflow.latest_version == version.version;
    let label = if newest { "versions " } else { "" };
    let live = if workflow.live_version == version.version && !newest { "  live" } else { "" };
    let gate =
        version.gate.as_ref().map_or_else(String::new, |gate| format!("  gate {}", gate.status.as_str()));
    let notes = version.notes.as_deref().map(harmless).unwrap_or_default();
    let day = version.created_at.get(..16).unwrap_or(&version.created_at).replace('T', " ");
    let digest = version.digest.get(..8).unwrap_or(&version.digest);
    let text = format!("{label:<10} {:<4} {day}Z  {digest}  {notes}{live}{gate}", number(version.version));
    say(text.trim_end())
}

/// A version's number; a draft has none.
fn number(version: Option<i32>) -> String {
    version.map_or_else(|| "draft".to_owned(), |number| number.to_string())
}
