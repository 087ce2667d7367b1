//! `callboard workflow check`.

use std::path::PathBuf;

use clap::Args;
use sandbox::{Options, Sandbox};
use wire::{CheckVersion, Checked};

use super::file::GraphFile;
use super::warn;
use crate::complaint::Complaint;
use crate::options::{ClientOptions, InWorkspace, block_on};
use crate::output::{Failure, Output, complain, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A graph, or an object with `graph` and optionally `runnable_config`; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// A file with the runnable config.
    #[arg(long, value_name = "FILE", requires = "service")]
    config: Option<PathBuf>,
    /// Ask the service, which also checks the runnable config and the sub-workflows.
    #[arg(long)]
    service: bool,
    #[command(flatten)]
    pub(super) place: InWorkspace,
    #[command(flatten)]
    pub(super) options: ClientOptions,
}

impl Check {
    pub(super) fn run(&self, options: &ClientOptions) -> Result<(), Failure> {
        let file = GraphFile::read(&self.file, self.config.as_deref())?;
        let checked = if self.service {
            let session = options.session_in(&self.place)?;
            let wanted =
                CheckVersion { graph: file.graph.clone(), runnable_config: file.runnable_config.clone() };
            let checked = block_on(async { Ok(session.client.check(&wanted).await) })?;
            let checked = checked.map_err(|error| session.failed(error))?;
            warn(session.output, &checked.warnings, &file);
            checked
        } else {
            options.without_service("workflow check, unless --service is given,")?;
            // This binary is also the worker.
            let sandbox = Sandbox::new(Options::own());
            let checked = block_on(async { Ok(engine::check_all(&file.graph, &sandbox).await) })?;
            let checked = checked.map_err(|error| Failure::from(Complaint::failed(error.to_string())))?;
            let errors = checked.err().unwrap_or_default();
            let warnings = [engine::warnings(&file.graph), engine::address_warnings(&file.graph)].concat();
            warn(options.output(), &warnings, &file);
            Checked { valid: errors.is_empty(), errors, warnings }
        };
        match (options.output(), checked.valid) {
            (Output::Json, valid) => {
                say(pretty(&checked)?)?;
                if valid { Ok(()) } else { Err(Failure::Said) }
            }
            (Output::Human, true) => {
                if !self.service && file.runnable_config.is_some() {
                    let told =
                        "The runnable config was not checked; --service asks the service, which checks it.";
                    complain(Paint::stderr().dim(told));
                }
                say(format_args!("{}: {}", file.name(), Paint::stdout().good("the graph is valid.")))
            }
            (Output::Human, false) => {
                let count = checked.errors.len();
                let message = match count {
                    1 => "The graph is not valid: 1 problem.".to_owned(),
                    _ => format!("The graph is not valid: {count} problems."),
                };
                let complaint = Complaint::failed(message).coded("graph.invalid").problems(checked.errors);
                Err(complaint.located(&file).into())
            }
        }
    }
}
