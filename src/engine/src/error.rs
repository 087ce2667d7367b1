//! Why a node or a run failed.

use std::time::Duration;

use serde_json::{Value, json};
use wire::ErrorCode;

use models::ModelError;

/// A node's failure; the engine adds which node it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// `node.failed`, `node.timeout` or a code of the node's own group.
    pub code: ErrorCode,
    /// For the run's record; may quote what the node was given.
    pub message: String,
    /// Whether another attempt may go well.
    pub retryable: bool,
    /// How long the called service asks to wait.
    pub retry_after: Option<Duration>,
    /// The node inside this one that failed: its whole path in the journal.
    pub node: Option<String>,
    /// Tokens of the models' answers that the attempt received, as results have it.
    pub usage: Option<Value>,
}

impl NodeError {
    /// A failure that another attempt would meet again.
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retryable: false, retry_after: None, node: None, usage: None }
    }

    /// A failure without a code of its own, that another attempt would meet again.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::NodeFailed, message)
    }

    /// A failure that another attempt may not meet.
    #[must_use]
    pub fn retryable(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { retryable: true, ..Self::new(code, message) }
    }

    /// What graphs see of it.
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

/// Why a run ended without an output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct RunError {
    /// Stable code.
    pub code: ErrorCode,
    /// For the run's record.
    pub message: String,
    /// The node that failed, if one did: its whole path, as `outer/inner` in a sub-workflow.
    pub node: Option<String>,
    /// Whether another run may go well.
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
