//! `callboard workflow rename`, `describe` and `archive`.

use clap::Args;
use wire::{BindingUse, UpdateWorkflow, WorkflowRecord, WorkflowUses};

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, complain, say};
use crate::terminal::{confirm, harmless};

#[derive(Debug, Args)]
pub(crate) struct Rename {
    /// Handle or id of the workflow
    workflow: String,
    /// The new name, shown to people
    name: String,
    /// The new handle (default: unchanged)
    #[arg(long)]
    handle: Option<String>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Handle or id of the workflow
    workflow: String,
    /// The new description; empty removes it
    text: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Its chat closes, and no runs start. Its runs and versions are kept; `callboard workflow restore` restores it."
)]
pub(crate) struct Archive {
    /// Handle or id of the workflow
    workflow: String,
    /// Archive without asking
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Rename {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let change = UpdateWorkflow {
            name: Some(self.name.clone()),
            handle: self.handle.clone(),
            ..UpdateWorkflow::default()
        };
        let changed = update(session, &self.workflow, &change).await?;
        told(session, &changed, &format!("Renamed workflow {} to \"{}\"", changed.handle, changed.name))
    }
}

impl Describe {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let text = Some(self.text.clone()).filter(|text| !text.is_empty());
        let change = UpdateWorkflow { description: Some(text), ..UpdateWorkflow::default() };
        let changed = update(session, &self.workflow, &change).await?;
        told(session, &changed, &format!("Updated the description of workflow {}", changed.handle))
    }
}

impl Archive {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| session.failed(error);
        let uses = session.client.workflow_uses(&self.workflow).await.map_err(failed)?;
        for line in uses_lines(&uses) {
            complain(harmless(&line));
        }
        if !self.yes {
            confirm(&format!("Archive workflow {}?", self.workflow))?;
        }
        let archived = session.client.archive(&self.workflow).await.map_err(failed)?;
        told(session, &archived, &format!("Archived workflow {}", archived.handle))
    }
}

impl Restore {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let restored = session.received(session.client.restore(&self.workflow).await)?;
        told(session, &restored, &format!("Restored workflow {}", restored.handle))
    }
}

/// The effects of archiving a workflow, one line each.
fn uses_lines(uses: &WorkflowUses) -> Vec<String> {
    let mut lines = Vec::new();
    if uses.is_public {
        lines.push("Its chat is published and will close.".to_owned());
    }
    lines.extend(uses.triggers.iter().map(|kind| format!("Its trigger {kind} will start no runs.")));
    let app = |used: &BindingUse| format!("The app {} runs it as {}.", used.app, used.binding);
    lines.extend(uses.apps.iter().map(app));
    lines.extend(uses.workflows.iter().map(|handle| format!("The workflow {handle} runs it.")));
    lines
}

async fn update(
    session: &ServiceSession,
    workflow: &str,
    change: &UpdateWorkflow,
) -> Result<WorkflowRecord, CommandError> {
    session.received(session.client.update_workflow(workflow, change).await)
}

fn told(session: &ServiceSession, workflow: &WorkflowRecord, text: &str) -> Result<(), CommandError> {
    session.output.print(workflow, || say(harmless(text)))
}
