//! `callboard workflow create`.

use clap::Args;
use wire::CreateWorkflow;

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::{Paint, harmless};

#[derive(Debug, Args)]
pub(crate) struct CreateWorkflowArgs {
    /// Display name of the workflow.
    name: String,
    /// Name for commands and addresses: lowercase letters, digits and single hyphens (default: derived from the name).
    #[arg(long)]
    handle: Option<String>,
    /// Description of the workflow.
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// A tag for searches; may be given several times.
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

impl CreateWorkflowArgs {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let wanted = CreateWorkflow {
            name: self.name.clone(),
            handle: self.handle.clone(),
            description: self.description.clone(),
            tags: self.tags.clone(),
        };
        let made = session.received(session.client.create_workflow(&wanted).await)?;
        if session.output == Output::Json {
            return say(pretty(&made)?);
        }
        let (paint, name) = (Paint::stdout(), harmless(&made.name));
        say(format_args!("Created workflow \"{name}\" with the handle {}.", paint.bold(&made.handle)))?;
        complain(
            Paint::stderr().dim(format_args!("Next: callboard workflow upload {} <graph.json>", made.handle)),
        );
        Ok(())
    }
}
