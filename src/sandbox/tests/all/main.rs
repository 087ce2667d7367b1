//! The sandbox with real worker processes: permitted code, forbidden code, and the pool.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod attempts;
mod calls;
mod documents;
mod image_bombs;
mod images;
mod pool;
mod surveys;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use kernel::{Clock, SystemClock};
use sandbox::{Call, Entry, Language, Limits, Modules, Options, Outcome, Sandbox, SandboxError};
use serde_json::Value;

pub(crate) use Language::{Javascript, Python};

/// A sandbox with workers from the built binary.
pub(crate) fn sandbox(workers: usize) -> Sandbox {
    Sandbox::new(Options { workers, memory: 64 << 20, ..Options::new(binary()) })
}

pub(crate) fn binary() -> PathBuf {
    let binary = std::env::var_os("CALLBOARD_BIN");
    binary.expect("CALLBOARD_BIN is not set: run `cargo xtask test`, which builds the binary").into()
}

pub(crate) async fn sleep(milliseconds: u64) {
    SystemClock::new().sleep(Duration::from_millis(milliseconds)).await;
}

pub(crate) fn modules(modules: &[(&str, &str)]) -> Arc<Modules> {
    Arc::new(modules.iter().map(|(name, source)| ((*name).to_owned(), (*source).into())).collect())
}

pub(crate) fn alone(language: Language, source: &str, args: Value) -> Call {
    Call {
        language,
        modules: Arc::default(),
        entry: Entry::Source(source.to_owned()),
        args,
        limits: Limits::default(),
    }
}

pub(crate) fn function(module: &str, function: &str, all: &[(&str, &str)], args: Value) -> Call {
    Call {
        language: Language::of_module(module).unwrap(),
        modules: modules(all),
        entry: Entry::Function { module: module.to_owned(), function: function.to_owned() },
        args,
        limits: Limits::default(),
    }
}

pub(crate) fn within(seconds: f64, call: Call) -> Call {
    let limits = Limits { time: Duration::from_secs_f64(seconds), ..call.limits };
    Call { limits, ..call }
}

/// Runs standalone code.
pub(crate) async fn ran(
    sandbox: &Sandbox,
    language: Language,
    source: &str,
) -> Result<Outcome, SandboxError> {
    sandbox.call(within(60.0, alone(language, source, Value::Null))).await
}

/// Returns the error message of failing code.
pub(crate) async fn error_text(sandbox: &Sandbox, language: Language, source: &str) -> String {
    match ran(sandbox, language, source).await {
        Err(SandboxError::Failed { message, .. }) => message,
        other => panic!("{source}: {other:?}"),
    }
}

/// Waits until a condition holds.
pub(crate) async fn until(event: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        sleep(10).await;
    }
    panic!("timed out waiting for: {event}");
}
