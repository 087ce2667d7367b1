//! Documents whose readers are large and were written for friendly input: they are read in a worker, too.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::call::Limits;

/// What a document is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DocumentKind {
    /// PDF.
    Pdf,
    /// Office Open XML, as Word writes it.
    Docx,
}

/// How far reading a document may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentLimits {
    /// How long it may take, from the moment when a worker begins it.
    pub time: Duration,
    /// Most pages; of a feed how many items are read.
    pub pages: usize,
    /// Bytes of its text.
    pub text: usize,
}

impl DocumentLimits {
    /// Limits of the call that reads it: a letter of a text takes at most six as JSON.
    pub(crate) fn as_call(self) -> Limits {
        Limits { time: self.time, output: self.text.saturating_mul(6), logs: 0 }
    }
}

/// What a document says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DocumentText {
    /// Its text; a form feed between pages.
    pub text: String,
    /// How many pages it has, where it has pages.
    pub pages: Option<usize>,
}

/// Why a document says nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DocumentProblem {
    /// It is damaged, or something else than it is said to be.
    #[error("{0}")]
    Damaged(String),
    /// It opens with a password only.
    #[error("it is protected by a password")]
    Protected,
    /// It has too many pages.
    #[error("it has {0} pages")]
    Pages(usize),
    /// Something in it is too large, unpacked; what.
    #[error("{0}")]
    TooLarge(String),
}
