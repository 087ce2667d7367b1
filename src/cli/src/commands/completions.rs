//! `callboard completions`: prints shell completion scripts.

use clap::Command;
use clap_complete::Shell;

use crate::output::{CommandError, say};

/// Prints a shell's completion script.
pub(crate) fn run(shell: Shell, mut command: Command) -> Result<(), CommandError> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "callboard", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}
