//! `callboard workflow chat`.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};
use wire::{UpdateChatSettings, UpdateWorkflow};

use super::file::TextFile;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, pretty, say};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  callboard workflow chat support\n  \
                        callboard workflow chat support --set busy=interrupt --set retention_days=30\n  \
                        callboard workflow chat support --set 'limits={\"usd_per_day\": 2}'")]
pub(crate) struct ChatSettingsArgs {
    /// Handle or id of the workflow
    workflow: String,
    /// Change a setting, such as `busy`, `title` or `retention_days`; the value is JSON or else text
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pairs: Vec<String>,
    /// A file with a JSON object of settings to change; `-` is standard input. --set takes precedence
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl ChatSettingsArgs {
    /// Prints the settings as JSON, in both output formats.
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let failed = |error| CommandError::from(session.complaint(error).about(&self.workflow));
        let workflow = match self.changes()? {
            Some(chat) => {
                let change = UpdateWorkflow { chat: Some(chat), ..UpdateWorkflow::default() };
                session.client.update_workflow(&self.workflow, &change).await.map_err(failed)?
            }
            None => session.client.workflow(&self.workflow).await.map_err(failed)?,
        };
        say(pretty(&workflow.chat)?)
    }

    fn changes(&self) -> Result<Option<UpdateChatSettings>, CommandError> {
        let mut changes = match &self.file {
            Some(file) => TextFile::read(file)?.object()?,
            None => Map::new(),
        };
        for pair in &self.pairs {
            let Some((name, text)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                return Err(CommandError::usage(format!("--set `{pair}`: write it as name=value")));
            };
            let value = serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()));
            changes.insert(name.to_owned(), value);
        }
        if changes.is_empty() {
            return Ok(None);
        }
        let read = serde_json::from_value(Value::Object(changes));
        read.map(Some).map_err(|error| CommandError::usage(format!("the settings cannot be read: {error}")))
    }
}
