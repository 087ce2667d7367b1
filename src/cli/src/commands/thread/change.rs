//! `callboard thread change`.

use clap::Args;
use wire::UpdateThread;
use wire::chat::ThreadStatus;

use super::ThreadArguments;
use crate::options::Session;
use crate::output::{Failure, Output, pretty, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  callboard thread change support thr_0198c2f0a1b27c4d9e6f1a2b3c4d5e6f --status locked --reason \"We look into it.\"\n  \
                        callboard thread change support thr_0198c2f0a1b27c4d9e6f1a2b3c4d5e6f --status active"
)]
pub(crate) struct Change {
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

impl Change {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
        let ThreadArguments { workflow, thread, .. } = &self.named;
        let change = UpdateThread {
            status: self.status.clone(),
            reason: self.reason.clone(),
            title: self.title.clone(),
        };
        let changed = session.client.change_thread(workflow, thread, &change).await;
        let changed = changed.map_err(|error| session.complaint(error).about(thread))?;
        if session.output == Output::Json {
            return say(pretty(&changed)?);
        }
        let title = changed.title.map(|title| format!(" \"{}\"", harmless(&title))).unwrap_or_default();
        say(format_args!("Thread {}{title} is {}.", harmless(&changed.id), changed.status.as_str()))
    }
}
