//! `callboard thread change`.

use clap::Args;
use wire::UpdateThread;
use wire::chat::ThreadStatus;

use super::ThreadArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  callboard thread change support thr_0198c2f0a1b27c4d9e6f1a2b3c4d5e6f --status locked --reason \"We look into it.\"\n  \
                        callboard thread change support thr_0198c2f0a1b27c4d9e6f1a2b3c4d5e6f --status active"
)]
pub(crate) struct ChangeThread {
    #[command(flatten)]
    pub(super) named: ThreadArguments,
    /// The new status: a locked thread accepts answers only, a closed one nothing.
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ThreadStatus::NAMES))]
    status: Option<String>,
    /// The reason for locking or closing it, shown to the visitor.
    #[arg(long, requires = "status")]
    reason: Option<String>,
    /// The new title.
    #[arg(long, required_unless_present = "status")]
    title: Option<String>,
}

impl ChangeThread {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let ThreadArguments { workflow, thread, .. } = &self.named;
        let change = UpdateThread {
            status: self.status.clone(),
            reason: self.reason.clone(),
            title: self.title.clone(),
        };
        let changed = session.client.change_thread(workflow, thread, &change).await;
        let changed = changed.map_err(|error| session.complaint(error).about(thread))?;
        let title = changed.title.as_deref().map(|title| format!(" \"{}\"", harmless(title)));
        let (id, title, status) = (harmless(&changed.id), title.unwrap_or_default(), changed.status.as_str());
        session.output.print(&changed, || say(format_args!("Thread {id}{title} is {status}.")))
    }
}
