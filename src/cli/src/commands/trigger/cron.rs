//! `callboard trigger cron`.

use clap::{Args, ValueEnum};
use wire::{CronConfig, MissedFires};

use super::show;
use crate::options::{ServiceSession, WorkspaceOptions};
use crate::output::CommandError;

#[derive(Debug, Args)]
#[command(after_help = "Every working day at 08:30 Berlin time:\n\
                        callboard trigger cron digest \"30 8 * * MON-FRI\" --timezone Europe/Berlin")]
pub(crate) struct Cron {
    /// Handle or id of the workflow.
    workflow: String,
    /// Minute, hour, day of the month, month, day of the week; or six fields with seconds first.
    expression: String,
    /// IANA time zone of the schedule.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// Handling of times at which the service was down.
    #[arg(long, value_enum, default_value_t = Missed::Skip)]
    missed: Missed,
    /// Start a run even if the previous one has not ended.
    #[arg(long)]
    overlap: bool,
    /// Keep the schedule, but pause it.
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    pub(super) options: WorkspaceOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Missed {
    /// Skip them.
    Skip,
    /// Start one run for all of them.
    Once,
}

impl Cron {
    pub(super) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let cron = CronConfig {
            expression: self.expression.clone(),
            timezone: self.timezone.clone(),
            overlap: self.overlap,
            missed: match self.missed {
                Missed::Skip => MissedFires::Skip,
                Missed::Once => MissedFires::Once,
            },
            enabled: !self.off,
        };
        let made = session.received(session.client.set_cron(&self.workflow, &cron).await)?;
        session.output.print(&made, || show::cron(&made))
    }
}
