//! Why a node or a run failed.

use wire::ErrorCode;

/// A node's failure; the engine adds which node it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct NodeError {
    /// `node.failed`, `node.timeout` or a code of the node's own group.
    pub code: ErrorCode,
    /// For the run's record; may quote what the node was given.
    pub message: String,
}

impl NodeError {
    /// A failure without a code of its own.
    #[must_use]
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: ErrorCode::NodeFailed, message: message.into() }
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
    /// The node at fault, where there is one.
    pub node: Option<String>,
}

impl RunError {
    pub(crate) fn at(node: &str, error: NodeError) -> Self {
        Self { code: error.code, message: error.message, node: Some(node.to_owned()) }
    }

    pub(crate) fn whole(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), node: None }
    }
}
