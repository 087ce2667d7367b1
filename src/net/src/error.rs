//! Why a request did not go well.

use std::error::Error as _;

use wire::ErrorCode;

/// A request was refused, or did not get its answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NetError {
    /// What went wrong.
    pub kind: NetErrorKind,
    /// For the run's record. Names at most host and port: never a path, a user, a header or a body.
    pub message: String,
}

/// What went wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NetErrorKind {
    /// The guard does not let the address be called.
    Refused,
    /// The name does not resolve, or no server accepts the connection.
    Unreachable,
    /// Something took longer than its limit.
    TimedOut,
    /// Head or body are larger than their limit.
    TooLarge,
    /// The connection broke, or what came is no HTTP.
    Broken,
}

impl NetErrorKind {
    /// Its stable code, of a node that has none of its own.
    #[must_use]
    pub const fn code(self) -> ErrorCode {
        match self {
            Self::Refused => ErrorCode::EgressRefused,
            Self::TimedOut => ErrorCode::NodeTimeout,
            Self::Unreachable | Self::TooLarge | Self::Broken => ErrorCode::NodeFailed,
        }
    }

    /// Whether the same request may go well later.
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

    /// What the library says, without the address that it would name.
    pub(crate) fn of(error: reqwest::Error, place: &str) -> Self {
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
