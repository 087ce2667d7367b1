//! `callboard config show`.

use clap::ValueEnum;
use config::{Config, Source};

/// For people or for programs.
#[derive(Clone, Copy, Default, ValueEnum)]
pub(crate) enum Output {
    #[default]
    Human,
    Json,
}

pub(crate) fn show(output: Output) -> Result<(), String> {
    let source = Source::from_env();
    let config = Config::load(&source).map_err(|problems| problems.to_string())?;
    let rows = config::table(&source, &config);
    match output {
        Output::Human => println!("{}", config::render(&rows).trim_end()),
        Output::Json => {
            let json = serde_json::to_string_pretty(&rows).map_err(|error| error.to_string())?;
            println!("{json}");
        }
    }
    for warning in config::warnings(&source, &config) {
        eprintln!("warning: {warning}");
    }
    Ok(())
}
