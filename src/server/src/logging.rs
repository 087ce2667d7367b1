//! Logs go to standard error.

use std::io::IsTerminal;

use config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;

/// Starts logging as configured; a second call changes nothing.
pub fn init(config: &Config) {
    let filter = EnvFilter::try_new(&config.log.filter);
    let bad = filter.as_ref().err().map(ToString::to_string);
    let builder = tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_env_filter(filter.unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr);
    // tracing escapes control characters of logged values, so no field can forge a line.
    let started = match config.log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    if let (Ok(()), Some(bad)) = (started, bad) {
        tracing::warn!(error = bad, "SERVICE_LOG is no filter; logging at info");
    }
}
