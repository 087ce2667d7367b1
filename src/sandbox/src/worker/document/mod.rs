//! Document text extraction.

mod docx;
mod feed;
mod font;
mod matrix;
mod pdf;

use std::panic::{UnwindSafe, catch_unwind};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::document::{DocumentKind, DocumentLimits, DocumentProblem, DocumentText};
use crate::frame::WorkerAnswer;

/// Reads a document. A panic in the reader becomes a problem without details.
pub(super) fn read(kind: DocumentKind, data: String, limits: DocumentLimits) -> WorkerAnswer {
    let read = |bytes: &[u8]| match kind {
        DocumentKind::Pdf => pdf::read(bytes, limits),
        DocumentKind::Docx => docx::read(bytes, limits),
    };
    reading(data, read).map_or_else(WorkerAnswer::Unreadable, WorkerAnswer::Document)
}

/// Reads a feed.
pub(super) fn read_feed(data: String, from: String, limits: DocumentLimits) -> WorkerAnswer {
    reading(data, move |bytes| feed::read(bytes, from, limits))
        .map_or_else(WorkerAnswer::Unreadable, WorkerAnswer::Feed)
}

/// Decodes base64 and calls a reader with the bytes.
pub(super) fn reading<T>(
    data: String,
    read: impl FnOnce(&[u8]) -> Result<T, DocumentProblem> + UnwindSafe,
) -> Result<T, DocumentProblem> {
    let reading = catch_unwind(move || {
        let bytes = STANDARD.decode(&data).map_err(|_| damaged("its bytes did not arrive"))?;
        drop(data);
        read(&bytes)
    });
    reading.unwrap_or_else(|_| Err(damaged("the parser failed")))
}

pub(super) fn damaged(why: impl Into<String>) -> DocumentProblem {
    DocumentProblem::Damaged(why.into())
}

/// A text that grows up to a limit.
struct LimitedText {
    text: String,
    most: usize,
}

impl LimitedText {
    fn new(most: usize) -> Self {
        Self { text: String::new(), most }
    }

    /// Appends a piece without the characters that PostgreSQL and JSON readers reject.
    fn push(&mut self, piece: &str) -> Result<(), DocumentProblem> {
        if self.text.len().saturating_add(piece.len()) > self.most {
            let message = format!("its text is larger than {} bytes", self.most);
            return Err(DocumentProblem::TooLarge(message));
        }
        self.text.extend(piece.chars().filter(|letter| !is_odd(*letter)));
        Ok(())
    }

    /// Ends the current line, if it is not empty.
    fn end_line(&mut self) -> Result<(), DocumentProblem> {
        self.trim_spaces();
        if self.text.is_empty() || self.text.ends_with(['\n', '\u{c}']) { Ok(()) } else { self.push("\n") }
    }

    /// Ends the paragraph with one empty line.
    fn end_paragraph(&mut self) -> Result<(), DocumentProblem> {
        self.end_line()?;
        let is_begun = !self.text.is_empty() && !self.text.ends_with(['\u{c}']);
        if is_begun && !self.text.ends_with("\n\n") { self.push("\n") } else { Ok(()) }
    }

    /// Adds a space between words, but never two.
    fn space(&mut self) -> Result<(), DocumentProblem> {
        if self.text.is_empty() || self.text.ends_with(char::is_whitespace) { Ok(()) } else { self.push(" ") }
    }

    fn trim_spaces(&mut self) {
        let kept = self.text.trim_end_matches([' ', '\t']).len();
        self.text.truncate(kept);
    }

    fn done(self, pages: Option<usize>) -> DocumentText {
        DocumentText { text: self.text.trim_end().to_owned(), pages }
    }
}

fn is_odd(letter: char) -> bool {
    letter.is_control() && !matches!(letter, '\n' | '\t' | '\u{c}')
}
