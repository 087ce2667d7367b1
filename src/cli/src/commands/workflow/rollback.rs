//! `callboard workflow rollback`.

use clap::Args;

use super::live::say_is_live;
use crate::complaint::Complaint;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;

#[derive(Debug, Args)]
pub(crate) struct Rollback {
    /// Handle or id of the workflow
    workflow: String,
    /// The version to make live (default: the one before the live version)
    #[arg(long, value_name = "NUMBER")]
    to: Option<i32>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl Rollback {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| session.failed(error);
        let number = match self.to {
            Some(number) => number,
            None => {
                let live = session.client.workflow(&self.workflow).await.map_err(failed)?.live_version;
                let before = live.map(|live| live - 1).filter(|before| *before > 0);
                before.ok_or_else(|| {
                    CommandError::from(
                        Complaint::failed(format!("{} has no version before the live one", self.workflow))
                            .coded("client.no_earlier_version")
                            .hint("callboard workflow show lists its versions."),
                    )
                })?
            }
        };
        let workflow = session.client.set_live(&self.workflow, number, false).await.map_err(failed)?;
        say_is_live(session, number, &workflow)
    }
}
