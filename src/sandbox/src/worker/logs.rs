//! Printed output, up to a limit.

use std::borrow::Cow;

use monty_types::{MontyException, PrintWriterCallback};

/// Keeps the first bytes and discards the rest.
#[derive(Debug)]
pub(super) struct Logs {
    text: String,
    most: usize,
    cut: bool,
}

impl Logs {
    pub(super) fn new(most: usize) -> Self {
        Self { text: String::new(), most, cut: false }
    }

    pub(super) fn push(&mut self, text: &str) {
        let left = self.most.saturating_sub(self.text.len());
        if self.cut || text.is_empty() {
            return;
        }
        let kept = text.get(..text.floor_char_boundary(left)).unwrap_or_default();
        self.text.push_str(kept);
        self.cut = kept.len() < text.len();
    }

    pub(super) fn into_text(mut self) -> String {
        if self.cut {
            self.text.push_str("…\n");
        }
        self.text
    }
}

impl PrintWriterCallback for Logs {
    fn stdout_write(&mut self, output: Cow<'_, str>) -> Result<(), MontyException> {
        self.push(&output);
        Ok(())
    }

    fn stdout_push(&mut self, end: char) -> Result<(), MontyException> {
        self.push(end.encode_utf8(&mut [0; 4]));
        Ok(())
    }
}
