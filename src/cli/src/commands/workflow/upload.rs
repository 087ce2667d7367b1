//! `callboard workflow upload`.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use wire::{CheckVersion, CreateVersion, CreateWorkflow, SavedVersion};

use super::file::GraphFile;
use super::{say_live, suggest, warn};
use crate::complaint::Complaint;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct Upload {
    /// Handle or id of the workflow.
    workflow: String,
    /// A graph, or an object with `graph` and optionally `runnable_config`, `metadata` and `notes`; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Notes on the changes in this version.
    #[arg(long, value_name = "TEXT")]
    notes: Option<String>,
    /// A file with the runnable config: prompts and settings.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Create the workflow if none has this handle.
    #[arg(long)]
    create: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

/// The service's response, and whether the version is new.
#[derive(Serialize)]
struct Uploaded {
    #[serde(flatten)]
    saved: SavedVersion,
    new: bool,
}

impl Upload {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        if self.config.as_ref().is_some_and(|config| config == &self.file && config.as_os_str() == "-") {
            return Err(CommandError::usage("graph and config cannot both come from standard input"));
        }
        let file = GraphFile::read(&self.file, self.config.as_deref())?;
        let made = if self.create { self.create(session, &file).await? } else { None };
        let version = CreateVersion {
            graph: file.graph.clone(),
            runnable_config: file.runnable_config.clone(),
            metadata: file.metadata.clone(),
            notes: self.notes.clone().or_else(|| file.notes.clone()),
        };
        let saved = session.client.save_version(&self.workflow, &version).await;
        let (saved, new) = saved.map_err(|error| self.refused(session.complaint(error), &file))?;
        if session.output == Output::Json {
            return say(pretty(&Uploaded { saved, new })?);
        }
        warn(session.output, &saved.warnings, &file);
        if let Some(name) = made {
            say(format_args!("Created workflow \"{name}\"."))?;
        }
        let (number, paint) = (saved.version.version.unwrap_or_default(), Paint::stdout());
        let workflow = paint.bold(&self.workflow);
        if new {
            say(format_args!("Saved version {number} of {workflow}."))?;
        } else {
            say(format_args!("Nothing changed: version {number} of {workflow} is identical."))?;
        }
        if let Some(from) = saved.config_kept_from {
            say(format_args!(
                "Kept the prompts and settings of version {from}; --config FILE replaces them."
            ))?;
        }
        say_live(&self.workflow, &saved)?;
        if new && number == 1 {
            let inputs = suggest::inputs(&file.graph);
            let next =
                format!("Next: callboard run {0}{inputs}, or callboard workflow publish {0}", self.workflow);
            complain(Paint::stderr().dim(next));
        }
        Ok(())
    }

    fn refused(&self, complaint: Complaint, file: &GraphFile) -> CommandError {
        let complaint = complaint.located(file).about(&self.workflow);
        match complaint.code() {
            Some("workflow.not_found") if !self.create => complaint.hint("--create creates it."),
            _ => complaint,
        }
        .into()
    }

    /// Creates the workflow if it does not exist and the graph is valid; returns its name.
    async fn create(
        &self,
        session: &ServiceSession,
        file: &GraphFile,
    ) -> Result<Option<String>, CommandError> {
        match session.client.workflow(&self.workflow).await {
            Ok(_) => return Ok(None),
            Err(error) if error.code() == Some("workflow.not_found") => {}
            Err(error) => return Err(session.failed(error)),
        }
        if let Some(better) = handle_like(&self.workflow) {
            return Err(CommandError::usage(format!(
                "`{}` is not a valid handle: use lowercase letters, digits and single hyphens; for example `{better}`",
                self.workflow
            )));
        }
        let check = CheckVersion { graph: file.graph.clone(), runnable_config: file.runnable_config.clone() };
        let checked = session.received(session.client.check(&check).await)?;
        if !checked.valid {
            let complaint =
                Complaint::failed("The graph is not valid; nothing was created.").coded("graph.invalid");
            return Err(complaint.problems(checked.errors).located(file).into());
        }
        let name = name_of(&self.workflow);
        let wanted = CreateWorkflow {
            name: name.clone(),
            handle: Some(self.workflow.clone()),
            description: None,
            tags: Vec::new(),
        };
        match session.client.create_workflow(&wanted).await {
            Ok(_) => Ok(Some(name)),
            // Another request created it first.
            Err(error) if error.code() == Some("workflow.handle_taken") => Ok(None),
            Err(error) => Err(session.failed(error)),
        }
    }
}

/// `None` if the text is a valid handle, else a similar handle.
fn handle_like(text: &str) -> Option<String> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let words: String = text.chars().map(plain).collect();
    let words: Vec<&str> = words.split('-').filter(|word| !word.is_empty()).collect();
    let joined = words.join("-");
    let like: String = joined.chars().take(64).collect();
    let like = like.trim_end_matches('-');
    let like = if like.is_empty() { "my-workflow" } else { like };
    (like != text).then(|| like.to_owned())
}

/// The name for a handle: `Order status` for `order-status`.
fn name_of(handle: &str) -> String {
    let words = handle.replace('-', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_handle_gets_a_suggestion() {
        assert_eq!(handle_like("order-status-2"), None);
        for (bad, good) in
            [("Order Status", "order-status"), ("-a--b-", "a-b"), ("ä", "my-workflow"), ("x_y", "x-y")]
        {
            assert_eq!(handle_like(bad).as_deref(), Some(good));
        }
        assert_eq!(handle_like(&"a".repeat(65)).unwrap().len(), 64);
        assert_eq!(name_of("order-status"), "Order status");
    }
}
