//! What the engine needs from outside.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use serde_json::Value;

use crate::NodeError;

/// A row of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The super-step, from 1.
    pub step: u32,
    /// The node's name.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: u32,
    /// Which attempt of the visit, from 1.
    pub attempt: u32,
    /// Whether the journal has a row of this attempt already: its start.
    pub begun: bool,
    /// SHA-256 of what the node was given.
    pub input_digest: [u8; 32],
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
    /// How it ended.
    pub outcome: StepOutcome,
}

/// How far an attempt has got.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// It was begun and has no end yet.
    Started,
    /// It has a result.
    Succeeded {
        /// The result.
        result: Value,
        /// When.
        finished_at: DateTime<Utc>,
    },
    /// It failed.
    Failed {
        /// Why.
        error: NodeError,
        /// When.
        finished_at: DateTime<Utc>,
    },
}

/// The journal could not take a row; the run cannot go on here.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the journal did not take a row: {0}")]
pub struct JournalError(pub String);

/// Where rows go.
pub trait Journal: Send + Sync {
    /// Hands a row over. The order of calls is the order of the rows; the future ends when the row is durable.
    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>>;
}

/// Where a streaming node's text goes.
#[async_trait]
pub trait TextSink: Send + Sync {
    /// Takes the next piece; waits when the receiver cannot keep up.
    async fn write(&self, piece: &str);
}
