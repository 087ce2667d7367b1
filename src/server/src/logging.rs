//! Logs go to standard error.

use std::io::IsTerminal;

use config::{Config, LogFormat};
use tracing_subscriber::EnvFilter;

/// Starts logging as configured; a second call changes nothing.
pub fn init(config: &Config) {
    // The configuration has parsed it already.
    let filter = EnvFilter::try_new(&config.log.filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let mut builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if !std::io::stderr().is_terminal() {
        builder = builder.with_ansi(false);
    }
    // tracing escapes control characters of logged values, so no field can forge a line.
    let _ = match config.log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}
