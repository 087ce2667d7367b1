//! How things look: colours where somebody sees them, plain text where a program reads.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, BufRead, IsTerminal, Write};

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use wire::chat::NoticeLevel;

use crate::output::Failure;

/// Checks that a person can answer.
pub(crate) fn check_terminal() -> Result<(), Failure> {
    if io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Failure::usage(
        "not confirmed: standard input is not a terminal, which could answer; add --yes to confirm",
    ))
}

/// Asks the person at the terminal a question that they have to answer with yes.
pub(crate) fn confirm(question: &str) -> Result<(), Failure> {
    check_terminal()?;
    let mut output = io::stderr().lock();
    let _ = write!(output, "{question} [y/N] ").and_then(|()| output.flush());
    drop(output);
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.map_err(|error| Failure::usage(format!("standard input cannot be read: {error}")))?;
    match line.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err("not confirmed; answer \"y\", or add --yes".to_owned().into()),
    }
}

/// Colours for one of the two outputs, or none: `NO_COLOR`, `CLICOLOR_FORCE` and `TERM=dumb` are honoured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paint {
    on: bool,
}

impl Paint {
    /// For standard output.
    pub(crate) fn stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// For standard error.
    pub(crate) fn stderr() -> Self {
        Self::of(&io::stderr())
    }

    /// For nobody's eyes.
    #[cfg(test)]
    pub(crate) fn plain() -> Self {
        Self { on: false }
    }

    fn of(stream: &impl RawStream) -> Self {
        Self { on: AutoStream::choice(stream) != ColorChoice::Never }
    }

    /// What is said beside the matter.
    pub(crate) fn dim(self, text: impl Display) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// What is to be found at a glance.
    pub(crate) fn bold(self, text: impl Display) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// What went well.
    pub(crate) fn good(self, text: impl Display) -> String {
        self.paint(AnsiColor::Green.on_default(), text)
    }

    /// What is to be minded.
    pub(crate) fn warning(self, text: impl Display) -> String {
        self.paint(AnsiColor::Yellow.on_default(), text)
    }

    /// What went wrong.
    pub(crate) fn bad(self, text: impl Display) -> String {
        self.paint(AnsiColor::Red.on_default().bold(), text)
    }

    /// Who speaks.
    pub(crate) fn name(self, text: impl Display) -> String {
        self.paint(AnsiColor::Cyan.on_default().bold(), text)
    }

    fn paint(self, style: Style, text: impl Display) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_string() }
    }
}

/// Whether somebody sees standard output.
pub(crate) fn stdout_is_seen() -> bool {
    io::stdout().is_terminal()
}

/// A text from outside as a terminal may have it: whatever could move the cursor, set a title or hide letters is left out. What changes the
/// direction of a text is shown by its number, as in reports.
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

/// Whether a character changes the direction of what follows.
const fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// A notice of a workflow as a line on standard error.
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

/// A line at the bottom of the terminal that says what is under way; nothing where nobody sees it.
pub(crate) struct Underway {
    seen: bool,
    shown: bool,
}

/// Letters of the line, so that it does not wrap in a terminal of 80 columns.
const WIDTH: usize = 78;

impl Underway {
    pub(crate) fn new() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Self { seen: io::stderr().is_terminal() && !dumb, shown: false }
    }

    /// Whether the line is on a terminal.
    pub(crate) fn is_seen(&self) -> bool {
        self.seen
    }

    /// Shows it; call [`Underway::clear`] before anything else is written.
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
    fn colours_stand_around_the_text_or_nowhere() {
        assert_eq!(Paint { on: false }.bad("no"), "no");
        assert_eq!(Paint { on: true }.good("yes"), "\u{1b}[32myes\u{1b}[0m");
    }

    #[test]
    fn what_drives_a_terminal_is_left_out() {
        assert_eq!(harmless("a\u{1b}[2Jb\u{7}\r\n\tc\u{9b}1m"), "a[2Jb\n\tc1m");
        assert_eq!(harmless("pay \u{202e}001\u{2069} now"), "pay [U+202E]001[U+2069] now");
        assert!(matches!(harmless("plain, ünïcode\n"), Cow::Borrowed(_)));
    }
}
