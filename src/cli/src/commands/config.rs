//! `callboard config show`.

use std::io::IsTerminal;

use config::{Config, Look, Source};

use crate::output::{CommandError, Output, complain, pretty, say};

pub(crate) fn show(output: Output) -> Result<(), CommandError> {
    let source = Source::from_env();
    let loaded = Config::load(&source);
    let rows = match &loaded {
        Ok(config) => config::table(&source, config),
        Err(problems) => config::table_of_problems(&source, problems),
    };
    match output {
        Output::Human => say(config::render(&rows, look()).trim_end())?,
        Output::Json => say(pretty(&rows)?)?,
    }
    let config = loaded.map_err(|problems| CommandError::from(super::told(&problems)))?;
    for warning in config::warnings(&source, &config) {
        complain(format_args!("warning: {warning}"));
    }
    Ok(())
}

fn look() -> Look {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    match (std::io::stdout().is_terminal(), plain) {
        (true, false) => Look::Terminal,
        (true, true) => Look::Plain,
        (false, _) => Look::Lines,
    }
}
