//! `callboard workflow publish` and `callboard workflow unpublish`.

use clap::{ArgAction, Args};
use wire::PublishRequest;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// Handle or id of the workflow.
    workflow: String,
    /// Require visitors to sign in; `--require-login=false` removes the requirement (default: unchanged).
    #[arg(
        long,
        value_name = "BOOL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "true",
        action = ArgAction::Set
    )]
    require_login: Option<bool>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Args)]
pub(crate) struct Unpublish {
    /// Handle or id of the workflow.
    workflow: String,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Publish {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let request = PublishRequest { require_login: self.require_login };
        let published = session.received(session.client.publish(&self.workflow, &request).await)?;
        if session.output == Output::Json {
            return say(pretty(&published)?);
        }
        let workflow = &published.workflow;
        let who = if workflow.require_login { "Signed-in users" } else { "Visitors" };
        let name = harmless(&workflow.name);
        // Only the address goes to standard output, so that a script can read it.
        complain(format_args!("Published \"{name}\". {who} with this address may chat:"));
        say(&published.share_url)?;
        if workflow.latest_version.is_none() {
            let handle = &workflow.handle;
            let told = format!(
                "It cannot answer until it has a version: callboard workflow upload {handle} <graph.json>"
            );
            complain(Paint::stderr().warning(told));
        }
        Ok(())
    }
}

impl Unpublish {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let closed = session.received(session.client.unpublish(&self.workflow).await)?;
        let name = harmless(&closed.name);
        session.output.print(&closed, || say(format_args!("Closed the chat of \"{name}\".")))
    }
}
