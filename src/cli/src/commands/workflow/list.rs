//! `callboard workflow list`.

use clap::Args;
use client::Part;
use wire::WorkflowRecord;

use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct List {
    /// Include archived workflows.
    #[arg(long)]
    archived: bool,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl List {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let workflows = self.all(session).await?;
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

    async fn all(&self, session: &Session) -> Result<Vec<WorkflowRecord>, Failure> {
        let mut all = Vec::new();
        let mut part = Part { limit: Some(200), cursor: None };
        loop {
            let listed = session.client.list_workflows(self.archived, &part).await;
            let listed = listed.map_err(|error| session.failed(error))?;
            all.extend(listed.data);
            part.cursor = listed.next_cursor;
            if part.cursor.is_none() {
                return Ok(all);
            }
        }
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
