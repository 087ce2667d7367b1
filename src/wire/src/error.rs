//! The shape of every error body.

use serde::{Deserialize, Serialize};

use crate::ErrorCode;

/// `{"detail": {…}}`, the body of every answer that is not a success.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorBody {
    /// What went wrong.
    pub detail: ErrorDetail,
}

/// What went wrong, for a person and for a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetail {
    /// One plain sentence.
    pub message: String,
    /// The stable dotted code; see `docs/ERRORS.md`.
    pub code: String,
    /// Every problem of a request that did not validate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
    /// Of a bundle of an app that was refused: 1 to 50 reasons, the first by precedence first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<BundleFinding>,
    /// Of `item.not_pending`: the stream of the turn that continues with the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<String>,
    /// Of `version_conflict`: the version of the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_version: Option<i64>,
    /// On a 5xx: the id under which the log has the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// One reason why a bundle is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BundleFinding {
    /// The stable code.
    pub code: String,
    /// The file, escaped and shortened to 256 characters; null if the finding concerns the whole archive.
    pub path: Option<String>,
    /// The line in the file, from 1.
    pub line: Option<u32>,
    /// What exactly is wrong.
    pub detail: String,
}

/// One problem at one place of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FieldError {
    /// JSON pointer (RFC 6901) to the place.
    pub pointer: String,
    /// A stable code of the problem.
    pub code: String,
    /// What is wrong there.
    pub message: String,
    /// What to write instead, where one can tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
}

/// A member's name inside a JSON pointer (RFC 6901).
#[must_use]
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Enough of a text to recognise it by.
#[must_use]
pub fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

/// Most problems that an answer lists. Who finds problems stops soon after, so that a small request makes no large
/// answer.
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
