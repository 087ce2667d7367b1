//! `callboard trigger remove`.

use clap::{Args, ValueEnum};

use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;
use crate::terminal::harmless;

#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Handle or id of the workflow.
    workflow: String,
    /// The trigger to remove.
    #[arg(value_enum)]
    trigger: Trigger,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Trigger {
    /// The schedule.
    Cron,
    /// The webhook, with its secret.
    Webhook,
}

impl Remove {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let (removed, what) = match self.trigger {
            Trigger::Cron => (session.client.remove_cron(&self.workflow).await, "schedule"),
            Trigger::Webhook => (session.client.remove_webhook(&self.workflow).await, "webhook"),
        };
        session.received(removed)?;
        session.output.say(format_args!("Removed the {what} of {}.", harmless(&self.workflow)))
    }
}
