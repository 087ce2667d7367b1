//! Logs go to standard error.

use std::io::IsTerminal;

use config::{Config, LogFormat};
use tracing_subscriber::filter::{EnvFilter, LevelFilter};

/// Starts logging as configured; further calls have no effect.
pub fn init(config: &Config) {
    // The configuration has already validated it.
    let filter =
        EnvFilter::try_new(directives(&config.log.filter)).unwrap_or_else(|_| EnvFilter::new("info"));
    let mut builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Otherwise it would report a closed standard error on standard error, which panics.
        .log_internal_errors(false);
    if !std::io::stderr().is_terminal() {
        builder = builder.with_ansi(false);
    }
    // tracing escapes control characters in logged values, so no field can forge a line.
    let _ = match config.log.format {
        LogFormat::Text => builder.try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
}

/// Adds exceptions for targets that a global level must not enable. Operators can enable each by name.
///
/// At `info`, the HTTP server would log each of its threads. At `debug`, the database driver would log every statement
/// with its values, which include user content and keys.
fn directives(filter: &str) -> String {
    let named = |target: &str| filter.split(',').any(|piece| piece.starts_with(target));
    let level = filter.split(',').filter_map(|piece| piece.parse::<LevelFilter>().ok()).max();
    let mut directives = Vec::new();
    if !named("actix_http") {
        // Otherwise any malformed request would be logged as our error; `http1` logs it in its own line.
        directives.push("actix_http::h1::dispatcher=off");
    }
    if !named("html5ever") {
        // Otherwise it would log every misplaced tag in a bundle: forty bytes for a tag of three.
        directives.push("html5ever=off");
    }
    if level == Some(LevelFilter::INFO) && !named("actix") {
        directives.push("actix_server=warn");
    }
    if level > Some(LevelFilter::INFO) && !named("tokio_postgres") {
        directives.push("tokio_postgres=info");
    }
    directives.push(filter);
    directives.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_global_level_excludes_noisy_and_sensitive_targets() {
        let quiet = |rest: &str| format!("actix_http::h1::dispatcher=off,html5ever=off,{rest}");
        assert_eq!(directives("info"), quiet("actix_server=warn,info"));
        assert_eq!(directives("INFO,store=debug"), quiet("actix_server=warn,INFO,store=debug"));
        assert_eq!(directives("debug"), quiet("tokio_postgres=info,debug"));
        assert_eq!(directives("store=debug,trace"), quiet("tokio_postgres=info,store=debug,trace"));
        for filter in ["warn", "store=info", "info,actix_server=info", "debug,tokio_postgres=debug", "off"] {
            assert_eq!(directives(filter), quiet(filter));
        }
        for filter in
            ["info,actix_http=debug,actix_server=info,html5ever=warn", "off,actix_http=trace,html5ever=off"]
        {
            assert_eq!(directives(filter), filter);
        }
    }
}
