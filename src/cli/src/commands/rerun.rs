//! `callboard rerun`: repeats a run from one of its steps on.

use clap::Args;
use serde_json::{Map, Value};

use super::run::follow;
use super::signals::Interrupts;
use crate::options::{ClientOptions, Session, with_service};
use crate::output::{Failure, Output};

#[derive(Debug, Args)]
#[command(after_help = "Ctrl-C cancels the new run; a second Ctrl-C stops waiting.")]
pub(crate) struct Rerun {
    /// Id of the run to repeat.
    run: String,
    /// The first step to execute, as numbered in the trace; the results of earlier steps are copied.
    #[arg(long, value_name = "N")]
    from_step: u32,
    /// Set a channel of `state` from that step on; the value is JSON or else text.
    #[arg(long = "set", value_name = "CHANNEL=VALUE")]
    patch: Vec<String>,
    /// Print only the result of the run.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    options: ClientOptions,
}

impl Rerun {
    /// Answers how to print what goes wrong, too.
    pub(crate) fn run(self, outer: ClientOptions) -> (Output, Result<(), Failure>) {
        let options = self.options.clone().or(outer);
        with_service(&options, async |session| self.perform(session).await)
    }

    async fn perform(&self, session: &Session) -> Result<(), Failure> {
        let wanted = wire::Rerun { from_step: self.from_step, patch: patch(&self.patch)? };
        let mut interrupts = Interrupts::listen()?;
        let begun = session.client.rerun(&self.run, &wanted).await;
        let begun = begun.map_err(|error| session.complaint(error).about(&self.run))?;
        follow(session, &begun.id, self.quiet, &mut interrupts).await
    }
}

fn patch(pairs: &[String]) -> Result<Map<String, Value>, Failure> {
    let read = |pair: &String| match pair.split_once('=').filter(|(channel, _)| !channel.is_empty()) {
        Some((channel, text)) => {
            let value = kernel::json::read(text, kernel::json::Numbers::Values)
                .unwrap_or_else(|_| Value::String(text.to_owned()));
            Ok((channel.to_owned(), value))
        }
        None => Err(Failure::usage(format!("--set `{pair}`: write it as channel=value"))),
    };
    pairs.iter().map(read).collect()
}
