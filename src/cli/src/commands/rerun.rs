//! `callboard rerun`: repeats a run.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};
use wire::{Live, RerunVersion};

use super::run::{follow, inputs};
use super::signals::Interrupts;
use crate::options::{ClientOptions, ServiceSession};
use crate::output::CommandError;

#[derive(Debug, Args)]
// `--version` is the workflow's here.
#[command(
    disable_version_flag = true,
    after_help = "Ctrl-C cancels the new run; a second Ctrl-C stops waiting.\n\
                  With other inputs or another version every step is executed."
)]
pub(crate) struct Rerun {
    /// Id of the run to repeat.
    run: String,
    /// The first step to execute, as numbered in the trace (default: the first failed step); earlier results are copied.
    #[arg(long, value_name = "N", conflicts_with_all = ["pairs", "file", "version"])]
    from_step: Option<u32>,
    /// Set a channel of `state` from that step on; the value is JSON or else text.
    #[arg(long = "set", value_name = "CHANNEL=VALUE")]
    patch: Vec<String>,
    /// Change an input; the others stay.
    #[arg(long = "input", value_name = "KEY=VALUE")]
    pairs: Vec<String>,
    /// A file with a JSON object in place of the inputs; `-` is standard input.
    #[arg(long = "inputs", value_name = "FILE")]
    file: Option<PathBuf>,
    /// The version to execute: its number, or `live` (default: the version of the run).
    #[arg(long, value_name = "N", value_parser = version)]
    version: Option<RerunVersion>,
    /// Print only the result of the run.
    #[arg(long)]
    quiet: bool,
    #[command(flatten)]
    pub(crate) options: ClientOptions,
}

impl Rerun {
    pub(crate) async fn run(&self, session: &ServiceSession) -> Result<(), CommandError> {
        let (from_step, patch, version) = (self.from_step, patch(&self.patch)?, self.version);
        let inputs = self.inputs(session).await?;
        let wanted = wire::Rerun { from_step, patch, inputs, version };
        let mut interrupts = Interrupts::listen()?;
        let begun = session.client.rerun(&self.run, &wanted).await;
        let begun = begun.map_err(|error| session.complaint(error).about(&self.run))?;
        follow(session, &begun.id, self.quiet, &mut interrupts).await
    }

    /// The changed inputs.
    async fn inputs(&self, session: &ServiceSession) -> Result<Option<Value>, CommandError> {
        if self.pairs.is_empty() && self.file.is_none() {
            return Ok(None);
        }
        let given = inputs::read(&self.pairs, self.file.as_deref())?;
        let found = session.client.run(&self.run).await;
        let run = found.map_err(|error| session.complaint(error).about(&self.run))?;
        let number = match self.version {
            Some(RerunVersion::Number(number)) => Some(number),
            Some(RerunVersion::Live(_)) => None,
            None => run.version,
        };
        let given = given.fit(session, &run.workflow_id, number).await?;
        Ok(Some(match (self.file.is_none(), run.inputs, given) {
            (true, Value::Object(mut inputs), Value::Object(changed)) => {
                inputs.extend(changed);
                Value::Object(inputs)
            }
            (_, _, given) => given,
        }))
    }
}

fn version(text: &str) -> Result<RerunVersion, &'static str> {
    match (text, text.parse()) {
        ("live", _) => Ok(RerunVersion::Live(Live::Live)),
        (_, Ok(number @ 1..)) => Ok(RerunVersion::Number(number)),
        _ => Err("must be the number of a version, or `live`"),
    }
}

fn patch(pairs: &[String]) -> Result<Map<String, Value>, CommandError> {
    let read = |pair: &String| match pair.split_once('=').filter(|(channel, _)| !channel.is_empty()) {
        Some((channel, text)) => {
            let value = kernel::json::read(text, kernel::json::Numbers::Values)
                .unwrap_or_else(|_| Value::String(text.to_owned()));
            Ok((channel.to_owned(), value))
        }
        None => Err(CommandError::usage(format!("--set `{pair}`: write it as channel=value"))),
    };
    pairs.iter().map(read).collect()
}
