//! `callboard workflow rename`, `describe` and `archive`.

use clap::Args;
use wire::{UpdateWorkflow, WorkflowRecord};

use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, pretty, say};
use crate::terminal::harmless;

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
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Describe {
    /// Handle or id of the workflow
    workflow: String,
    /// The new description; empty removes it
    text: String,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Args)]
#[command(after_help = "Its chat closes, and no runs start. Its runs and versions are kept.")]
pub(crate) struct Archive {
    /// Handle or id of the workflow
    workflow: String,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Rename {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
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
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let text = Some(self.text.clone()).filter(|text| !text.is_empty());
        let change = UpdateWorkflow { description: Some(text), ..UpdateWorkflow::default() };
        let changed = update(session, &self.workflow, &change).await?;
        told(session, &changed, &format!("Updated the description of workflow {}", changed.handle))
    }
}

impl Archive {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let archived = session.client.archive(&self.workflow).await;
        let archived = archived.map_err(|error| session.failed(error))?;
        told(session, &archived, &format!("Archived workflow {}", archived.handle))
    }
}

async fn update(
    session: &Session,
    workflow: &str,
    change: &UpdateWorkflow,
) -> Result<WorkflowRecord, Failure> {
    session.client.update_workflow(workflow, change).await.map_err(|error| session.failed(error))
}

fn told(session: &Session, workflow: &WorkflowRecord, text: &str) -> Result<(), Failure> {
    if session.output == Output::Json {
        return say(pretty(workflow)?);
    }
    say(harmless(text))
}
