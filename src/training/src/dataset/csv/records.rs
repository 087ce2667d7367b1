//! Reads CSV records with their line numbers.

use csv::{Reader, ReaderBuilder, StringRecord};
use wire::FieldError;

use crate::case::{LARGEST, too_large};

/// A CSV record.
pub(super) struct CsvRecord {
    /// `/lines/N` with the line at which the record begins.
    pub(super) pointer: String,
    pub(super) cells: StringRecord,
}

/// Iterates over a text's records.
pub(super) struct Records<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Line breaks before the reader's position.
    breaks: usize,
}

impl<'a> Records<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let reader = ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text.as_bytes());
        Self { text, reader, breaks: 0 }
    }

    fn place(&self) -> usize {
        usize::try_from(self.reader.position().byte()).unwrap_or(usize::MAX)
    }
}

impl Iterator for Records<'_> {
    type Item = Result<CsvRecord, FieldError>;

    fn next(&mut self) -> Option<Self::Item> {
        let begin = self.place();
        let mut cells = StringRecord::new();
        let read = self.reader.read_record(&mut cells);
        // The reader's own line count ends before the line feed of a CRLF, and before blank lines, which it skips.
        let passed = self.text.get(begin..self.place()).unwrap_or_default();
        let text = passed.trim_start_matches(['\u{feff}', '\r', '\n']);
        let breaks = |text: &str| text.matches('\n').count();
        let line = 1 + self.breaks + breaks(passed) - breaks(text);
        self.breaks += breaks(passed);
        let pointer = format!("/lines/{line}");
        match read {
            Ok(false) => None,
            // Without this check, the lines up to the next quote would silently become part of the cell.
            Ok(true) if text.matches('"').count() % 2 == 1 => {
                let message = "a quote is not closed, or a quote inside a cell is not doubled";
                Some(Err(FieldError::new(pointer, "quote", message).suggest(r#""a cell with ""quotes""""#)))
            }
            Ok(true) if text.len() > LARGEST => Some(Err(too_large(pointer))),
            Ok(true) => Some(Ok(CsvRecord { pointer, cells })),
            Err(error) => Some(Err(FieldError::new(pointer, "csv", error.to_string()))),
        }
    }
}
