//! The error body format.

use serde::{Deserialize, Serialize};

use crate::ErrorCode;

/// `{"detail": {…}}`, the body of every error answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// The error.
    pub detail: ErrorDetail,
}

/// An error, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    /// One plain sentence.
    pub message: String,
    /// The stable dotted code; see `docs/ERRORS.md`.
    pub code: String,
    /// Every problem in an invalid request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// For a rejected app bundle: 1 to 50 reasons, the one with the highest precedence first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<BundleFinding>,
    /// For `item.not_pending`: the stream of the turn that continues with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<String>,
    /// For `version_conflict`: the record's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<i64>,
    /// For a 5xx: the id under which the log has the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A reason for rejecting a bundle.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleFinding {
    /// The stable code.
    pub code: String,
    /// The file, escaped and shortened to 256 characters; null if the finding concerns the whole archive.
    pub path: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// The exact problem.
    pub detail: String,
}

/// A problem at one location in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the location.
    pub pointer: String,
    /// The problem's stable code.
    pub code: String,
    /// The problem.
    pub message: String,
    /// The value to use instead, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A member's name inside a JSON pointer (RFC 6901).
#[must_use]
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A prefix long enough to recognise the text.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Maximum problems in an answer. Checks stop soon afterwards, so that a small request produces no large answer.
pub const MOST_PROBLEMS: usize = 100;

impl FieldError {
    /// A problem without a suggestion.
    #[must_use]
    pub fn new(pointer: impl Into<String>, code: &str, message: impl Into<String>) -> Self {
        Self { pointer: pointer.into(), code: code.to_owned(), message: message.into(), suggestion: None }
    }

    /// The same problem with a suggestion.
    #[must_use]
    pub fn suggest(mut self, suggestion: impl Into<String>) -> Self {
        self.suggestion = Some(suggestion.into());
        self
    }
}

impl ErrorBody {
    /// The body for `code` with its public message.
    #[must_use]
    pub fn new(code: ErrorCode) -> Self {
        Self {
            detail: ErrorDetail {
                stream_id: None,
                current_version: None,
                message: code.message().to_owned(),
                code: code.as_str().to_owned(),
                errors: Vec::new(),
                findings: Vec::new(),
                request_id: None,
            },
        }
    }
}
