//! `callboard visitor erase`.

use clap::Args;
use serde_json::json;

use super::VisitorArguments;
use crate::options::ServiceSession;
use crate::output::{CommandError, Output, pretty, say};
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Erase {
    #[command(flatten)]
    pub(super) named: VisitorArguments,
    /// Confirm; this cannot be undone.
    #[arg(long)]
    yes: bool,
}

impl Erase {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let VisitorArguments { workflow, visitor, .. } = &self.named;
        let (who, chat) = (harmless(visitor), harmless(workflow));
        if !self.yes {
            return Err(CommandError::usage(format!(
                "this permanently erases all threads, files and feedback of {who} in the chat of {chat}; confirm with --yes"
            )));
        }
        let erased = session.client.erase_visitor(workflow, visitor).await;
        let erased = erased.map_err(|error| session.complaint(error).about(visitor))?;
        match (erased, session.output) {
            (Some(erased), Output::Json) => say(pretty(&erased)?),
            (None, Output::Json) => say(pretty(&json!({"status": "erasing"}))?),
            (Some(erased), Output::Human) => {
                say(format_args!("Erased the data of {who}: {} threads.", erased.threads))
            }
            (None, Output::Human) => say(format_args!("The service is erasing the data of {who}.")),
        }
    }
}
