//! Findings and notes about a document.

use std::collections::BTreeSet;

use crate::code::Code;
use crate::finding::{Findings, Note, printable};

/// Maximum notes per bundle.
const MAX_NOTES: usize = 100;
/// Maximum quoted characters per value.
const QUOTED_CHARS: usize = 80;

/// A bundle's notes: the first by code and path.
#[derive(Debug, Default)]
pub(crate) struct Notes(BTreeSet<Note>);

impl Notes {
    pub(crate) fn add(&mut self, code: &'static str, path: &str, line: Option<u32>, detail: String) {
        self.0.insert(Note { code, path: printable(path.as_bytes()), line, detail });
        if self.0.len() > MAX_NOTES {
            self.0.pop_last();
        }
    }

    pub(crate) fn into_vec(self) -> Vec<Note> {
        self.0.into_iter().collect()
    }
}

/// Collects a document's findings at the current line.
pub(super) struct Report<'a> {
    pub(super) path: &'a str,
    pub(super) line: u32,
    pub(super) findings: &'a mut Findings,
    pub(super) notes: &'a mut Notes,
}

impl Report<'_> {
    pub(super) fn find(&mut self, code: Code, detail: impl Into<String>) {
        self.findings.line(code, self.path, Some(self.line), detail);
    }

    pub(super) fn find_at(&mut self, line: u32, code: Code, detail: impl Into<String>) {
        self.findings.line(code, self.path, Some(line), detail);
    }

    pub(super) fn note(&mut self, code: &'static str, detail: String) {
        self.notes.add(code, self.path, Some(self.line), detail);
    }
}

/// Quotes a document's value in a detail: shortened and safe to print.
pub(super) fn quoted(value: &str) -> String {
    let short: String = value.chars().take(QUOTED_CHARS).collect();
    format!("`{}`", printable(short.as_bytes()))
}
