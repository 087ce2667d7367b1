//! Request errors.

use std::error::Error as _;

use wire::ErrorCode;

/// A request was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NetError {
    /// The failure class.
    pub kind: NetErrorKind,
    /// Text for the run's record. Names at most host and port: never a path, a user, a header or a body.
    pub message: String,
}

/// Failure classes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetErrorKind {
    /// The guard refuses the address.
    Refused,
    /// The name does not resolve, or no server accepts the connection.
    Unreachable,
    /// A time limit was exceeded.
    TimedOut,
    /// The head or the body exceeds its size limit.
    TooLarge,
    /// The connection broke, or the response is not HTTP.
    Broken,
}

impl NetErrorKind {
    /// The stable error code for nodes that have no specific code.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Refused => ErrorCode::EgressRefused,
            Self::TimedOut => ErrorCode::NodeTimeout,
            Self::Unreachable | Self::TooLarge | Self::Broken => ErrorCode::NodeFailed,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(self) -> bool {
        matches!(self, Self::Unreachable | Self::TimedOut | Self::Broken)
    }
}

impl NetError {
    pub(crate) fn new(kind: NetErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::new(NetErrorKind::Refused, message)
    }

    /// Converts a library error and removes the URL from its text.
    pub(crate) fn from_reqwest(error: reqwest::Error, place: &str) -> Self {
        let kind = if error.is_timeout() {
            NetErrorKind::TimedOut
        } else if error.is_connect() {
            NetErrorKind::Unreachable
        } else {
            NetErrorKind::Broken
        };
        let error = error.without_url();
        let mut cause = error.source();
        let mut last = error.to_string();
        while let Some(inner) = cause {
            last = inner.to_string();
            cause = inner.source();
        }
        Self::new(kind, format!("{place}: {last}"))
    }
}
