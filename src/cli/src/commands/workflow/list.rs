//! `callboard workflow list`.

use clap::Args;
use client::Part;
use wire::WorkflowRecord;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::parts;
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct ListWorkflows {
    /// Include archived workflows.
    #[arg(long)]
    archived: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ListWorkflows {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let read = async |part: &Part| session.client.list_workflows(self.archived, part).await;
        let workflows = parts::all(session, read).await?;
        if session.output == Output::Json {
            return say(pretty(&workflows)?);
        }
        if workflows.is_empty() {
            complain("No workflows found. `callboard workflow create <name>` creates one.");
            return Ok(());
        }
        let width = workflows.iter().map(|one| one.handle.len()).max().unwrap_or_default().max(6);
        let head = format!("{:width$}  VERSION  CHAT      NAME", "HANDLE");
        say(Paint::stdout().bold(head))?;
        for one in &workflows {
            let version = one.latest_version.map_or_else(|| "none".to_owned(), |number| number.to_string());
            let name = harmless(&one.name);
            say(format_args!("{:width$}  {version:<7}  {:<8}  {name}", one.handle, chat(one)))?;
        }
        Ok(())
    }
}

/// The state of a workflow's chat, in one word.
pub(super) fn chat(workflow: &WorkflowRecord) -> &'static str {
    match (workflow.is_archived, workflow.is_public, workflow.require_login) {
        (true, _, _) => "archived",
        (_, false, _) => "closed",
        (_, true, false) => "open",
        (_, true, true) => "login",
    }
}
