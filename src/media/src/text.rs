//! UTF-8 validation, and markup detection at the beginning of a stream.

use crate::markup::{Markup, Sniffer};

/// Validates UTF-8 in pieces of any size.
#[derive(Debug, Default)]
pub(crate) struct TextScan {
    /// Up to three bytes of an incomplete character that continues in the next piece.
    pending: Vec<u8>,
    invalid: bool,
    sniffer: Sniffer,
}

impl TextScan {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.invalid {
            return;
        }
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        self.valid_part(text);
        self.invalid |= text.len() < bytes.len();
    }

    fn valid_part(&mut self, mut bytes: &[u8]) {
        while !self.pending.is_empty() {
            let Some((first, rest)) = bytes.split_first() else { return };
            bytes = rest;
            self.pending.push(*first);
            match std::str::from_utf8(&self.pending) {
                Ok(text) => {
                    self.sniffer.push(text);
                    self.pending.clear();
                }
                Err(error) if error.error_len().is_some() => {
                    self.invalid = true;
                    return;
                }
                Err(_) => {}
            }
        }
        let Err(error) = std::str::from_utf8(bytes).map(|text| self.sniffer.push(text)) else { return };
        let (valid, rest) = bytes.split_at_checked(error.valid_up_to()).unwrap_or_default();
        self.sniffer.push(std::str::from_utf8(valid).unwrap_or_default());
        if error.error_len().is_some() {
            self.invalid = true;
        } else {
            self.pending.extend_from_slice(rest);
        }
    }

    /// Whether the stream can no longer be text.
    pub(crate) const fn is_invalid(&self) -> bool {
        self.invalid
    }

    /// Whether the stream is text, if it ends here.
    pub(crate) const fn is_complete(&self) -> bool {
        !self.invalid && self.pending.is_empty()
    }

    /// Markup at the beginning, as far as later input cannot change it.
    pub(crate) fn markup(&self) -> Markup {
        self.sniffer.markup()
    }

    /// Markup at the beginning, if the stream ends here.
    pub(crate) fn final_markup(&self) -> Markup {
        self.sniffer.final_markup()
    }
}
