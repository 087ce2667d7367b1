//! The real binary's client commands, as used by people at a terminal and by scripts.

mod app_logs;
mod apps;
mod chat;
mod credentials;
mod datasets;
mod indexes;
mod login;
mod options;
mod proxy;
mod run;
mod runs;
mod terminal;
mod threads;
mod tokens;
mod triggers;
mod workflows;
mod workspaces;

use serde_json::Value;

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Repeats the message, with a pause before each word.
fn slow_echo(pause_ms: u64) -> Value {
    integration_tests::graphs::words("You said: {{ inputs.message }}", pause_ms)
}
