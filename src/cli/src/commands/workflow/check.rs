//! `callboard workflow check`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use sandbox::{Options, Sandbox};
use wire::{CheckVersion, Checked};

use super::file::GraphFile;
use super::warn;
use crate::complaint::Complaint;
use crate::options::{WorkspaceOptions, block_on};
use crate::output::{CommandError, Output, complain, pretty, say};
use crate::terminal::Paint;

#[derive(Debug, Args)]
pub(crate) struct CheckGraph {
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
    pub(super) options: WorkspaceOptions,
}

impl CheckGraph {
    pub(super) fn run(&self, options: &WorkspaceOptions) -> Result<(), CommandError> {
        let file = GraphFile::read(&self.file, self.config.as_deref())?;
        let checked = if self.service {
            let session = options.session()?;
            let wanted =
                CheckVersion { graph: file.graph.clone(), runnable_config: file.runnable_config.clone() };
            let checked = block_on(async { Ok(session.client.check(&wanted).await) })?;
            let checked = session.received(checked)?;
            warn(session.output, &checked.warnings, &file);
            checked
        } else {
            options.client.without_service("workflow check, unless --service is given,")?;
            // This binary is also the worker.
            let sandbox = Sandbox::new(Options::own());
            let graph = Arc::new(file.graph.clone());
            let inspected = block_on(async { Ok(engine::inspect(graph, &sandbox).await) })?;
            let inspected =
                inspected.map_err(|error| CommandError::from(Complaint::failed(error.to_string())))?;
            let errors = inspected.checked.err().unwrap_or_default();
            let warnings = [inspected.joins, inspected.addresses].concat();
            warn(options.output(), &warnings, &file);
            Checked { valid: errors.is_empty(), errors, warnings }
        };
        match (options.output(), checked.valid) {
            (Output::Json, valid) => {
                say(pretty(&checked)?)?;
                if valid { Ok(()) } else { Err(CommandError::Said) }
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
