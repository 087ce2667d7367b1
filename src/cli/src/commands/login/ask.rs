//! Questions at the terminal, and answers from standard input.

use std::io::{self, BufRead, IsTerminal, Read, Write};

use kernel::Secret;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use secrecy::ExposeSecret;

use crate::output::CommandError;

/// Whether a person can answer.
pub(super) fn can_ask() -> bool {
    io::stdin().is_terminal()
}

/// Asks for a line. Asks again after an empty line; end of input means that the user leaves.
pub(super) fn line(question: &str) -> Result<String, CommandError> {
    loop {
        prompt(question);
        let answer = first_line()?.ok_or(CommandError::Interrupted)?;
        if !answer.is_empty() {
            return Ok(answer);
        }
    }
}

/// Reads the first line of standard input; `None` at its end.
pub(super) fn first_line() -> Result<Option<String>, CommandError> {
    let mut line = String::new();
    match io::stdin().lock().read_line(&mut line) {
        Ok(0) => Ok(None),
        Ok(_) => Ok(Some(line.trim().to_owned())),
        Err(error) => Err(unreadable(&error)),
    }
}

/// Reads a token from standard input; typed input is not shown.
pub(super) fn secret(question: &str) -> Result<Secret, CommandError> {
    super::token_of(hidden(question)?.expose_secret())
}

/// Reads all of standard input, or a line that is typed at a terminal and not shown.
pub(in crate::commands) fn hidden(question: &str) -> Result<Secret, CommandError> {
    let mut text = String::new();
    if can_ask() {
        // Echo must be off before the question invites the user to type.
        let hidden = Hidden::begin();
        prompt(question);
        let line = first_line();
        drop(hidden);
        let _ = writeln!(io::stderr());
        text = line?.ok_or(CommandError::Interrupted)?;
    } else {
        io::stdin().lock().read_to_string(&mut text).map_err(|error| unreadable(&error))?;
    }
    Ok(text.into())
}

fn prompt(question: &str) {
    let mut output = io::stderr().lock();
    let _ = write!(output, "{question}").and_then(|()| output.flush());
}

fn unreadable(error: &io::Error) -> CommandError {
    CommandError::usage(format!("standard input cannot be read: {error}"))
}

/// Turns off terminal echo until dropped.
struct Hidden(Option<Termios>);

impl Hidden {
    fn begin() -> Self {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(before) = &before {
            let mut modes = before.clone();
            modes.local_modes.remove(LocalModes::ECHO);
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &modes);
        }
        Self(before)
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, before);
        }
    }
}
