//! Node and run failures.

use std::time::Duration;

use serde_json::{Value, json};
use wire::ErrorCode;

use models::ModelError;

/// A node's failure; the engine adds the node.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// `node.failed`, `node.timeout` or a code specific to the node type.
    pub code: ErrorCode,
    /// For the run's record; may quote the node's input.
    pub message: String,
    /// Whether another attempt may succeed.
    pub retryable: bool,
    /// Wait requested by the called service.
    pub retry_after: Option<Duration>,
    /// The nested node that failed: its full journal path.
    pub node: Option<String>,
    /// Tokens of the model answers that the attempt received, in the format of results.
    pub usage: Option<Box<Value>>,
}

impl NodeError {
    /// Creates a failure that would repeat on retry.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, retry_after: None, node: None, usage: None }
    }

    /// Creates a failure without a specific code that would repeat on retry.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NodeFailed, message)
    }

    /// Creates a failure that a retry may avoid.
    #[must_use]
    pub fn retryable(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new(code, message) }
    }

    /// Returns the error as graphs see it.
    pub(crate) fn as_result(&self) -> Value {
        let mut error = json!({"code": self.code.as_str(), "message": self.message});
        if let (Some(node), Some(members)) = (&self.node, error.as_object_mut()) {
            members.insert("node".to_owned(), json!(node));
        }
        json!({"error": error})
    }
}

impl From<ModelError> for NodeError {
    fn from(error: ModelError) -> Self {
        Self {
            retryable: error.kind.is_retryable(),
            retry_after: error.retry_after,
            ..Self::new(error.kind.code(), error.message)
        }
    }
}

/// The reason why a run ended without an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// Stable code.
    pub code: ErrorCode,
    /// For the run's record.
    pub message: String,
    /// The failed node, if any, with its full path: `outer/inner` in a sub-workflow.
    pub node: Option<String>,
    /// Whether another run may succeed.
    pub retryable: bool,
}

impl RunError {
    pub(crate) fn at(node: &str, error: NodeError) -> Self {
        let NodeError { code, message, retryable, node: inner, .. } = error;
        Self { code, message, node: Some(inner.unwrap_or_else(|| node.to_owned())), retryable }
    }

    pub(crate) fn whole(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), node: None, retryable: code == ErrorCode::RunTimeout }
    }
}
