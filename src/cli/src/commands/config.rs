//! `callboard config show`.

use clap::ValueEnum;

use crate::output::{Failure, complain, say};

/// For people or for programs.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Human,
    Json,
}

pub(crate) fn show(output: Output) -> Result<(), Failure> {
    let (source, config) = super::load()?;
    let rows = config::table(&source, &config);
    match output {
        Output::Human => say(config::render(&rows).trim_end())?,
        Output::Json => say(serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?)?,
    }
    for warning in config::warnings(&source, &config) {
        complain(format_args!("warning: {warning}"));
    }
    Ok(())
}
