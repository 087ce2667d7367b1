//! What the commands write, and how they end when nobody reads it any more.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::ValueEnum;
use serde::Serialize;

use crate::complaint::Complaint;

/// What a shell reports of a program that was ended by SIGPIPE.
const READER_GONE: u8 = 141;
/// What a shell reports of a program that was ended by SIGINT.
const INTERRUPTED: u8 = 130;

/// For people or for programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Human,
    /// For programs.
    Json,
}

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// What to tell the user, and the status to leave with.
    Told(Box<Complaint>),
    /// Everything was said already.
    Said,
    /// The user ended it with Ctrl-C.
    Interrupted,
    /// Whoever read standard output has gone, as in `callboard config show | head -1`: nothing is left to say.
    ReaderGone,
}

impl From<String> for Failure {
    fn from(text: String) -> Self {
        Complaint::failed(text).into()
    }
}

impl From<Complaint> for Failure {
    fn from(complaint: Complaint) -> Self {
        Self::Told(Box::new(complaint))
    }
}

impl Failure {
    /// The call makes no sense.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Complaint::usage(text).into()
    }

    /// Says it on standard error, and answers the status to leave with.
    pub(crate) fn report(self, output: Output) -> ExitCode {
        match self {
            Self::Told(told) => {
                match output {
                    Output::Human => complain(told.for_people()),
                    Output::Json => complain(told.for_programs()),
                }
                ExitCode::from(told.status())
            }
            Self::Said => ExitCode::FAILURE,
            Self::Interrupted => ExitCode::from(INTERRUPTED),
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
        _ => format!("cannot write to standard output: {error}").into(),
    })
}

/// Writes a line on standard error; one that nobody can read is no reason to fail.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// JSON for people's eyes.
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(value).map_err(|error| Failure::from(error.to_string()))
}

/// JSON on a line.
pub(crate) fn compact(value: &impl Serialize) -> Result<String, Failure> {
    serde_json::to_string(value).map_err(|error| Failure::from(error.to_string()))
}
