//! The commands, one file each.

pub(crate) mod answer;
pub(crate) mod app;
pub(crate) mod audit;
pub(crate) mod chat;
pub(crate) mod checkpoint;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod credential;
pub(crate) mod dataset;
pub(crate) mod demo;
pub(crate) mod dev_tls;
pub(crate) mod doctor;
pub(crate) mod index;
pub(crate) mod login;
pub(crate) mod logout;
pub(crate) mod node;
pub(crate) mod rerun;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
mod signals;
pub(crate) mod thread;
pub(crate) mod token;
pub(crate) mod trainings;
pub(crate) mod trigger;
pub(crate) mod visitor;
mod watchdog;
pub(crate) mod whoami;
pub(crate) mod workflow;
pub(crate) mod workspace;

use ::config::{Config, Problems, Source};

use crate::output::CommandError;

/// Loads the configuration; the error lists all problems.
fn load() -> Result<(Source, Config), CommandError> {
    let source = Source::from_env();
    let config = Config::load(&source).map_err(|problems| CommandError::from(told(&problems)))?;
    Ok((source, config))
}

pub(crate) fn told(problems: &Problems) -> String {
    match problems.0.as_slice() {
        [only] => only.to_string(),
        all => {
            let lines: String = all.iter().map(|problem| format!("\n  {problem}")).collect();
            format!("{} problems in the configuration:{lines}", all.len())
        }
    }
}
