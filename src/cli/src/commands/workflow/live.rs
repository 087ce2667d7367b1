//! `callboard workflow live`.

use clap::Args;
use wire::WorkflowRecord;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Live {
    /// Handle or id of the workflow
    workflow: String,
    /// Number of the version
    number: i32,
    /// Allow a version that has failed its gate
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Live {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let workflow =
            session.received(session.client.set_live(&self.workflow, self.number, self.force).await)?;
        say_is_live(session, self.number, &workflow)
    }
}

/// Prints the workflow after one of its versions became live.
pub(super) fn say_is_live(
    session: &ServiceSession,
    number: i32,
    workflow: &WorkflowRecord,
) -> Result<(), CommandError> {
    let handle = harmless(&workflow.handle);
    session.output.print(workflow, || say(format_args!("Version {number} of {handle} is live.")))
}
