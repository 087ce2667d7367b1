//! Runs other programs for xtask.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// A command without the environment of the package that runs xtask.
///
/// `cargo run` sets variables that name that package (`CARGO_PKG_NAME`, `CARGO_MANIFEST_DIR`, …). ring's build script
/// watches them, so passing them on would rebuild ring and all its dependents each time a developer changes between
/// `cargo xtask test` and a plain `cargo build`.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for (name, _) in env::vars_os() {
        let ours = name.to_string_lossy();
        if ours.starts_with("CARGO_PKG_") || ours.starts_with("CARGO_MANIFEST_") {
            command.env_remove(&name);
        }
    }
    command
}

/// `cargo <args>` in the workspace root.
pub(crate) fn cargo(root: &Path, args: &[&str]) -> Command {
    let mut command = command("cargo");
    command.current_dir(root).args(args);
    command
}

/// Prints the command, runs it on this terminal and waits.
///
/// # Errors
/// Names the command when it cannot be started or fails.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = show(command);
    println!("$ {line}");
    let status = command.status().with_context(|| line.clone())?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// The command's standard output, trimmed.
///
/// # Errors
/// Names the command and ends with its error output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = show(command);
    let output = command.stdin(Stdio::null()).output().with_context(|| line.clone())?;
    if !output.status.success() {
        bail!("`{line}` failed: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn show(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// The path of `program`, found through the `PATH`.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// Whether this process runs as root, which may install packages, but cannot run PostgreSQL.
pub(crate) fn is_root() -> bool {
    output(command("id").arg("-u")).is_ok_and(|id| id == "0")
}
