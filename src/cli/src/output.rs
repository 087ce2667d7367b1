//! The output of commands, and their exit when the reader has gone.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use kernel::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::complaint::Complaint;

/// The shell's exit status for a program ended by SIGPIPE.
const READER_GONE: u8 = 141;
/// The shell's exit status for a program ended by SIGINT.
const INTERRUPTED: u8 = 130;
/// Interval at which a command that writes rarely checks that its output still has a reader.
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// The output format.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    /// For people.
    #[default]
    Human,
    /// For programs.
    Json,
}

impl Output {
    /// Prints a record: as JSON for programs, with `for_people` for people.
    pub(crate) fn print(
        self,
        record: &impl Serialize,
        for_people: impl FnOnce() -> Result<(), CommandError>,
    ) -> Result<(), CommandError> {
        match self {
            Self::Human => for_people(),
            Self::Json => say(pretty(record)?),
        }
    }

    /// Prints a line for people, and nothing for programs.
    pub(crate) fn say(self, line: impl Display) -> Result<(), CommandError> {
        match self {
            Self::Human => say(line),
            Self::Json => Ok(()),
        }
    }
}

/// The reason that a command failed.
#[derive(Debug)]
pub(crate) enum CommandError {
    /// An error message for the user, with an exit status.
    Told(Box<Complaint>),
    /// The error was already printed.
    Said,
    /// The user pressed Ctrl-C.
    Interrupted,
    /// The reader of standard output has gone, as in `callboard config show | head -1`, so nothing is printed.
    ReaderGone,
}

impl From<String> for CommandError {
    fn from(text: String) -> Self {
        Complaint::failed(text).into()
    }
}

impl From<Complaint> for CommandError {
    fn from(complaint: Complaint) -> Self {
        Self::Told(Box::new(complaint))
    }
}

impl CommandError {
    /// The arguments are not valid.
    pub(crate) fn usage(text: impl Into<String>) -> Self {
        Complaint::usage(text).into()
    }

    /// Prints the failure on standard error and returns the exit status.
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

/// Writes a line to standard output and flushes it.
pub(crate) fn say(line: impl Display) -> Result<(), CommandError> {
    piece(format_args!("{line}\n"))
}

/// Writes to standard output and flushes it.
pub(crate) fn piece(text: impl Display) -> Result<(), CommandError> {
    let mut output = io::stdout().lock();
    write!(output, "{text}").and_then(|()| output.flush()).map_err(|error| match error.kind() {
        ErrorKind::BrokenPipe => CommandError::ReaderGone,
        _ => format!("cannot write to standard output: {error}").into(),
    })
}

/// Waits until the reader of standard output has gone, even if nothing is written; forever if it is a file.
pub(crate) async fn reader_gone() {
    let (output, clock) = (io::stdout(), SystemClock::new());
    loop {
        let mut watched = [PollFd::new(&output, PollFlags::empty())];
        let polled = poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
        let gone = |output: &PollFd<'_>| output.revents().intersects(PollFlags::ERR | PollFlags::HUP);
        if polled.is_ok() && watched.iter().any(gone) {
            return;
        }
        clock.sleep(READER_CHECK_INTERVAL).await;
    }
}

/// Writes a line to standard error; ignores write errors.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Indented JSON.
pub(crate) fn pretty(value: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string_pretty(value).map_err(|error| CommandError::from(error.to_string()))
}

/// Single-line JSON.
pub(crate) fn compact(value: &impl Serialize) -> Result<String, CommandError> {
    serde_json::to_string(value).map_err(|error| CommandError::from(error.to_string()))
}
