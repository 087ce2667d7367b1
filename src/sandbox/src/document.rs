//! Documents with complex parsers that were written for trusted input, so workers parse them too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Limits;

/// Document formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Office Open XML, as written by Word.
    Docx,
}

/// Limits for reading a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentLimits {
    /// Maximum time, from the moment a worker starts.
    pub time: Duration,
    /// Maximum pages; for a feed, the number of items to read.
    pub pages: usize,
    /// Maximum bytes of text.
    pub text: usize,
}

impl DocumentLimits {
    /// Limits for the call that reads the document: JSON encodes a byte of text in at most six bytes.
    pub(crate) fn as_call(self) -> Limits {
        Limits { time: self.time, output: self.text.saturating_mul(6), logs: 0 }
    }
}

/// A document's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentText {
    /// The text, with a form feed between pages.
    pub text: String,
    /// Page count, if the format has pages.
    pub pages: Option<usize>,
}

/// The reason that a document cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentProblem {
    /// The document is damaged or in another format than declared.
    #[error("{0}")]
    Damaged(String),
    /// The document requires a password.
    #[error("it is protected by a password")]
    Protected,
    /// The document has too many pages.
    #[error("it has {0} pages")]
    Pages(usize),
    /// A part of the document is too large when unpacked; the text says which.
    #[error("{0}")]
    TooLarge(String),
}
