//! Terminal output: colours on a terminal, plain text for programs.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use wire::chat::NoticeLevel;

use crate::output::CommandError;

/// Checks that standard input is a terminal, so that a person can answer.
pub(crate) fn check_terminal() -> Result<(), CommandError> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    Err(CommandError::usage(
        "not confirmed: standard input is not a terminal, which could answer; add --yes to confirm",
    ))
}

/// Asks a question at the terminal that must be answered with yes.
pub(crate) fn confirm(question: &str) -> Result<(), CommandError> {
    check_terminal()?;
    let mut output = io::stderr().lock();
    let _ = write!(output, "{question} [y/N] ").and_then(|()| output.flush());
    drop(output);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| CommandError::usage(format!("standard input cannot be read: {error}")))?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err("not confirmed; answer \"y\", or add --yes".to_owned().into()),
    }
}

/// Colours for an output stream, or none: honours `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub(crate) fn stdout() -> Self {
        Self::for_stream(&io::stdout())
    }

    /// For standard error.
    pub(crate) fn stderr() -> Self {
        Self::for_stream(&io::stderr())
    }

    /// Without colours.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    fn for_stream(stream: &impl RawStream) -> Self {
        Self { on: AutoStream::choice(stream) != ColorChoice::Never }
    }

    /// Secondary information.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// Important information.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Success.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// Warnings.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// Errors.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// A speaker's name.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.paint(AnsiColor::Cyan.on_default().bold(), text)
    }

    fn paint(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

/// Whether standard output is a terminal.
pub(crate) fn stdout_is_seen() -> bool {
    io::stdout().is_terminal()
}

/// Makes an external text safe for a terminal: removes characters that could move the cursor, set a title or hide
/// others. Shows characters that change the text direction by number, as in reports.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |c: char| c.is_control() && c != '\n' && c != '\t';
    if !text.contains(|c| harmful(c) || turns(c)) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars().filter(|c| !harmful(*c)) {
        if turns(c) {
            shown.push_str(&format!("[U+{:04X}]", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Whether a character changes the text direction.
const fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Formats a workflow's notice as a line for standard error.
pub(crate) fn notice(level: NoticeLevel, title: Option<&str>, message: &str) -> String {
    let paint = Paint::stderr();
    let text = title.map_or_else(|| message.to_owned(), |title| format!("{title}: {message}"));
    let text = format!("! {}", harmless(&text));
    match level {
        NoticeLevel::Info => paint.dim(text),
        NoticeLevel::Warning => paint.warning(text),
        NoticeLevel::Danger => paint.bad(text),
    }
}

/// A progress line at the bottom of the terminal; not shown without a terminal.
pub(crate) struct Underway {
    seen: bool,
    shown: bool,
}

/// Line width, so that it does not wrap on a terminal with 80 columns.
const WIDTH: usize = 78;

impl Underway {
    pub(crate) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { seen: io::stderr().is_terminal() && !dumb, shown: false }
    }

    /// Whether the line can be shown.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// Shows the line; call [`Underway::clear`] before any other output.
    pub(crate) fn show(&mut self, text: &str) {
        if self.seen && !text.is_empty() {
            let line: String = harmless(text).chars().take(WIDTH).collect();
            let line = Paint::stderr().dim(line);
            let _ = write!(io::stderr().lock(), "\r\x1b[2K{line}");
            self.shown = true;
        }
    }

    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.shown) {
            let _ = write!(io::stderr().lock(), "\r\x1b[2K");
        }
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_surround_the_text_or_are_omitted() {
        assert_eq!(Paint { on: false }.bad("no"), "no");
        assert_eq!(Paint { on: true }.good("yes"), "\u{1b}[32myes\u{1b}[0m");
    }

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{7}\r\n\tc\u{9b}1m"), "a[2Jb\n\tc1m");
        assert_eq!(harmless("pay \u{202e}001\u{2069} now"), "pay [U+202E]001[U+2069] now");
        assert!(matches!(harmless("plain, ünïcode\n"), Cow::Borrowed(_)));
    }
}
