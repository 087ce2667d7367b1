//! `callboard completions`: what a shell needs to complete commands.

use clap::Command;
use clap_complete::Shell;

use crate::output::{Failure, say};

/// Prints the script of a shell.
pub(crate) fn run(shell: Shell, mut command: Command) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command, "callboard", &mut script);
    say(String::from_utf8_lossy(&script).trim_end())
}
