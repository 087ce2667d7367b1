//! What the commands write, and how they end when nobody reads it any more.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

/// What a shell reports of a program that was ended by SIGPIPE.
const READER_GONE: u8 = 141;

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The text for the user.
    Told(String),
    /// Whoever read standard output has gone, as in `callboard config show | head -1`: nothing is left to say.
    ReaderGone,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Self::Told(text)
    }
}

impl Failure {
    /// Says it on standard error, and answers the status to leave with.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Told(text) => {
                complain(format_args!("error: {text}"));
                ExitCode::FAILURE
            }
            Self::ReaderGone => ExitCode::from(READER_GONE),
        }
    }
}

/// Writes a line on standard output, at once.
pub(crate) fn say(line: impl Display) -> Result<(), Failure> {
    piece(format_args!("{line}\n"))
}

/// Writes on standard output, at once.
pub(crate) fn piece(text: impl Display) -> Result<(), Failure> {
    let mut output = io::stdout().lock();
    write!(output, "{text}").and_then(|()| output.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => Failure::ReaderGone,
        _ => Failure::Told(format!("cannot write to standard output: {error}")),
    })
}

/// Writes a line on standard error; one that nobody can read is no reason to fail.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
