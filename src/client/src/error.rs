//! This package's error type.

use std::time::Duration;

use wire::ErrorDetail;

/// The underlying error from another library.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The call is invalid; nothing was sent.
    #[error("{0}")]
    Usage(String),
    /// The service responded with an error.
    #[error("{} (HTTP {status}, {})", detail.message, detail.code)]
    Api {
        /// The HTTP status.
        status: u16,
        /// The error body.
        detail: Box<ErrorDetail>,
        /// The `Retry-After` header, if set.
        retry_after: Option<Duration>,
    },
    /// The response did not arrive, or not completely.
    #[error("{fault}")]
    Transport {
        /// The network failure.
        fault: TransportFault,
        /// The error from the network library.
        source: Option<Cause>,
    },
    /// The response is not from this service: another program may listen there, or a proxy responded.
    #[error("{what}")]
    Protocol {
        /// The problem.
        what: String,
        /// The HTTP status, if known.
        status: Option<u16>,
    },
}

/// A connection failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransportFault {
    /// The connection could not be established.
    Connect,
    /// No data arrived within the timeout.
    Timeout,
    /// The connection broke before the response's end.
    Cut,
    /// The service asked to reconnect, as it does when it shuts down.
    Reconnect,
}

impl std::fmt::Display for TransportFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "the service cannot be reached",
            Self::Timeout => "the service did not respond in time",
            Self::Cut => "the connection broke before the end of the response",
            Self::Reconnect => "the service is shutting down and asked to connect again",
        })
    }
}

/// Failure kinds that the command line distinguishes by exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The service was reached and the call failed.
    Failed,
    /// The call is invalid.
    Usage,
    /// The caller lacks permission.
    Refused,
    /// There was no complete response.
    Unreachable,
}

impl ErrorKind {
    /// The command line's exit code.
    #[must_use]
    pub const fn exit_code(self) -> u8 {
        match self {
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Refused => 3,
            Self::Unreachable => 4,
        }
    }
}

impl ClientError {
    /// The failure kind.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_) => ErrorKind::Usage,
            Self::Transport { .. } => ErrorKind::Unreachable,
            Self::Api { .. } | Self::Protocol { .. } => match self.status() {
                Some(401 | 403) => ErrorKind::Refused,
                _ => ErrorKind::Failed,
            },
        }
    }

    /// The HTTP status of the response, if there was one.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Api { status, .. } => Some(*status),
            Self::Protocol { status, .. } => *status,
            Self::Usage(_) | Self::Transport { .. } => None,
        }
    }

    /// The dotted code from the service.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Api { detail, .. } => Some(&detail.code),
            _ => None,
        }
    }

    /// Whether the same request may succeed a little later.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Transport { .. } => true,
            Self::Api { status, .. } => matches!(status, 429 | 503),
            // A proxy responds with its own page while the service restarts.
            Self::Protocol { status, .. } => matches!(status, Some(429 | 502..=504)),
            Self::Usage(_) => false,
        }
    }

    /// The delay that the service requested before the next attempt.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Api { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol { what: what.into(), status: None }
    }

    pub(crate) fn fault(fault: TransportFault) -> Self {
        Self::Transport { fault, source: None }
    }

    pub(crate) fn cut(cause: Cause) -> Self {
        Self::Transport { fault: TransportFault::Cut, source: Some(cause) }
    }
}

impl From<reqwest::Error> for ClientError {
    fn from(error: reqwest::Error) -> Self {
        if error.is_builder() {
            return Self::Usage(format!("the request cannot be built: {error}"));
        }
        let fault = if error.is_timeout() {
            TransportFault::Timeout
        } else if error.is_connect() {
            TransportFault::Connect
        } else {
            TransportFault::Cut
        };
        Self::Transport { fault, source: Some(Box::new(error)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(status: u16) -> ClientError {
        let detail = wire::ErrorBody::new(wire::ErrorCode::WorkflowNotFound).detail;
        ClientError::Api { status, detail: Box::new(detail), retry_after: None }
    }

    #[test]
    fn each_error_kind_has_an_exit_code() {
        let exit = |error: ClientError| error.kind().exit_code();
        assert_eq!(exit(api(404)), 1);
        assert_eq!(exit(api(401)), 3);
        assert_eq!(exit(api(403)), 3);
        assert_eq!(exit(ClientError::Usage("no".into())), 2);
        assert_eq!(exit(ClientError::fault(TransportFault::Connect)), 4);
        assert_eq!(exit(ClientError::protocol("html")), 1);
    }

    #[test]
    fn only_transient_errors_are_retried() {
        assert!(api(503).is_passing() && api(429).is_passing());
        assert!(!api(500).is_passing() && !api(404).is_passing());
        assert!(ClientError::fault(TransportFault::Reconnect).is_passing());
        assert!(!ClientError::protocol("html").is_passing());
        assert!(ClientError::Protocol { what: "a proxy".into(), status: Some(502) }.is_passing());
    }

    #[test]
    fn an_api_error_reads_as_a_sentence() {
        assert_eq!(api(404).to_string(), "Workflow not found. (HTTP 404, workflow.not_found)");
    }
}
