//! `callboard checkpoint use`.

use clap::Args;
use serde::Serialize;
use wire::SavedVersion;

use super::locate::find;
use crate::commands::workflow::{say_live, warn};
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
#[command(after_help = "The version has the graph that was trained, and the prompts of the checkpoint.")]
pub(crate) struct Use {
    /// Handle or id of the workflow
    workflow: String,
    /// Number or id of the checkpoint
    checkpoint: String,
    /// Notes on the changes in this version
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// The service's response, and whether the version is new.
#[derive(Serialize)]
struct SavedCheckpoint {
    #[serde(flatten)]
    saved: SavedVersion,
    new: bool,
}

impl Use {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let checkpoint = find(session, &self.workflow, &self.checkpoint).await?;
        let saved =
            session.client.save_checkpoint(&self.workflow, &checkpoint.id, self.notes.as_deref()).await;
        let (saved, new) = saved.map_err(|error| session.complaint(error).about(&self.workflow))?;
        if session.output == Output::Json {
            return say(pretty(&SavedCheckpoint { saved, new })?);
        }
        warn(session.output, &saved.warnings, &());
        let (number, from) = (saved.version.version.unwrap_or_default(), checkpoint.config_version);
        let workflow = Paint::stdout().bold(&self.workflow);
        if new {
            say(format_args!("Saved version {number} of {workflow} from checkpoint {from}."))?;
        } else {
            say(format_args!(
                "Nothing changed: version {number} of {workflow} is identical to checkpoint {from}."
            ))?;
        }
        say_live(&self.workflow, &saved)
    }
}
