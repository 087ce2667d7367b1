//! Reasons for rejecting a request.

use std::fmt;

use auth::scope::ScopeSet;
use store::StoreError;
use wire::ErrorCode;

/// A decision, or the reason for rejecting the request.
pub type Decision<T> = Result<T, Refusal>;

/// The reason for rejecting a request.
#[derive(Debug)]
pub struct Refusal {
    /// Its stable code.
    pub code: ErrorCode,
    /// A public message that replaces the table's.
    pub message: Option<String>,
    /// Seconds after which the same request may succeed.
    pub retry_after: Option<i64>,
    /// For the log; never sent.
    pub cause: Option<String>,
}

impl Refusal {
    /// A refusal with the table's message.
    #[must_use]
    pub fn new(code: ErrorCode) -> Self {
        Self { code, message: None, retry_after: None, cause: None }
    }

    pub(crate) fn with_message(self, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..self }
    }

    pub(crate) fn retry_after(self, seconds: i64) -> Self {
        Self { retry_after: Some(seconds), ..self }
    }

    /// Rejects a caller who lacks these scopes.
    #[must_use]
    pub fn missing(scopes: ScopeSet) -> Self {
        Self::new(ErrorCode::MissingScope).with_message(format!("Missing required scopes: {scopes}"))
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code.as_str())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self { cause: Some(error.to_string()), ..Self::new(error.code()) }
    }
}
