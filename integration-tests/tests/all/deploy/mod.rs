//! The files in `deploy/`: started if their program is available, otherwise validated by its checker.

mod failover;
mod files;
mod front;
mod image;
mod proxies;
mod tunnel;

use std::path::PathBuf;
use std::process::{Command, Output};

/// The path of a file in `deploy/`.
fn shipped(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(name)
}

/// The text of a file in `deploy/`.
fn text_of(name: &str) -> String {
    std::fs::read_to_string(shipped(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Replaces a text that must occur.
fn replace_text(text: &mut String, shipped: &str, other: &str) {
    assert!(text.contains(shipped), "not in the file: {shipped}");
    *text = text.replace(shipped, other);
}

/// Panics with the command that installs a program, if it is missing.
fn require_program(name: &str) {
    let variable = format!("CALLBOARD_MISSING_{}", name.to_uppercase().replace('-', "_"));
    if let Ok(line) = std::env::var(variable) {
        panic!("{name} is missing; this command installs it: {line}");
    }
}

/// Runs a program that must succeed; returns its output.
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } =
        command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{stdout}\n{stderr}");
    format!("{stdout}{stderr}")
}
