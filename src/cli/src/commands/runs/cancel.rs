//! `callboard runs cancel`.

use clap::Args;
use wire::{RunRecord, RunState};

use crate::options::{ClientOptions, ServiceSession};
use crate::output::{CommandError, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Id of the run.
    run: String,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Cancel {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let cancelled = session.client.cancel_run(&self.run).await;
        let run = cancelled.map_err(|error| session.complaint(error).about(&self.run))?;
        session.output.print(&run, || say(result(&run)))
    }
}

fn result(run: &RunRecord) -> String {
    let (id, status) = (harmless(&run.id), run.status.as_str());
    match (run.status, &run.finished_at) {
        (RunState::Cancelled, _) => format!("Cancelled run {id}."),
        (_, Some(_)) => format!("Run {id} had already ended: {status}."),
        (_, None) => format!("Requested the cancellation of run {id}; it is still {status}."),
    }
}
