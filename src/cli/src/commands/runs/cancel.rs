//! `callboard runs cancel`.

use clap::Args;

use crate::options::{ClientOptions, Session};
use crate::output::{Failure, Output, pretty, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Id of the run.
    run: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Cancel {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let cancelled = session.client.cancel_run(&self.run).await;
        let run = cancelled.map_err(|error| session.complaint(error).about(&self.run))?;
        match session.output {
            Output::Json => say(pretty(&run)?),
            Output::Human => say(format_args!("The run is {}.", harmless(run.status.as_str()))),
        }
    }
}
