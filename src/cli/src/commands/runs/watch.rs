//! `callboard runs watch`.

use clap::Args;

use crate::commands::run::follow;
use crate::commands::signals::Interrupts;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::CommandError;

#[derive(Debug, Args)]
#[command(after_help = "Ctrl-C cancels the run; a second Ctrl-C stops waiting.")]
pub(crate) struct Watch {
    /// Id of the run.
    run: String,
    /// Print only the output.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Watch {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let found = session.client.run(&self.run).await;
        let run = found.map_err(|error| session.complaint(error).about(&self.run))?;
        let mut interrupts = Interrupts::listen()?;
        follow(session, &run.id, self.quiet, &mut interrupts).await
    }
}
