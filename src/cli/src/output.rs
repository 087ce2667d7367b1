//! What the commands write, and how they end when nobody reads it any more.

use std::fmt::Display;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use clap::ValueEnum;
use kernel::{Clock, SystemClock};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::Serialize;

use crate::complaint::Complaint;

/// What a shell reports of a program that was ended by SIGPIPE.
const READER_GONE: u8 = 141;
/// What a shell reports of a program that was ended by SIGINT.
const INTERRUPTED: u8 = 130;
/// How often a command that writes seldom checks that its output still has a reader.
const READER_CHECK_INTERVAL: Duration = Duration::from_millis(250);

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

/// Waits until the reader of standard output has gone, although nothing is written; for ever if it is a file.
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
