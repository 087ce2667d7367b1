//! `callboard workflow live`.

use clap::Args;

use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, pretty, say};
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
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Live {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let set = session.client.set_live(&self.workflow, self.number, self.force).await;
        let workflow = set.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return say(pretty(&workflow)?);
        }
        say(format_args!("Version {} of {} is live.", self.number, harmless(&workflow.handle)))
    }
}
