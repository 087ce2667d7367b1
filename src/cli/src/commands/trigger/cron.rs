//! `callboard trigger cron`.

use clap::{Args, ValueEnum};
use wire::{CronConfig, MissedFires};

use super::show;
use crate::options::{ClientOptions, InWorkspace, Session};
use crate::output::{Failure, Output, pretty, say};

#[derive(Debug, Args)]
#[command(after_help = "Each working day at half past eight in Berlin, summer and winter:\n\
                        callboard trigger cron digest \"30 8 * * MON-FRI\" --timezone Europe/Berlin")]
pub(crate) struct Cron {
    /// Handle or id of the workflow.
    workflow: String,
    /// Minute, hour, day of the month, month, day of the week; or six fields with seconds first.
    expression: String,
    /// The zone of these times, as IANA names it.
    #[arg(long, value_name = "ZONE", default_value = "UTC")]
    timezone: String,
    /// What becomes of times at which the service was down.
    #[arg(long, value_enum, default_value_t = Missed::Skip)]
    missed: Missed,
    /// Begin a run even while the last one goes on.
    #[arg(long)]
    overlap: bool,
    /// Keep the schedule, but begin nothing for now.
    #[arg(long)]
    off: bool,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Missed {
    /// They are left out.
    Skip,
    /// One run makes up for all of them.
    Once,
}

impl Cron {
    pub(super) async fn run(&self, session: &Session) -> Result<(), Failure> {
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
        let made = session.client.set_cron(&self.workflow, &cron).await;
        let made = made.map_err(|error| session.failed(error))?;
        if session.output == Output::Json {
            return say(pretty(&made)?);
        }
        show::cron(&made)
    }
}
