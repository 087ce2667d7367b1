//! What the engine needs from outside.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use kernel::{Clock, Random};
use serde_json::{Map, Value};
use wire::chat::NoticeLevel;

use crate::cache::Cache;
use crate::models::Models;
use crate::{NodeError, Plan};

/// Everything that a run works with.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// Where rows go.
    pub journal: &'a dyn Journal,
    /// Where texts go.
    pub output: &'a dyn Output,
    /// Time.
    pub clock: &'a dyn Clock,
    /// Randomness, for the waits between attempts.
    pub random: &'a dyn Random,
    /// Language models.
    pub models: &'a Models,
    /// Other workflows.
    pub workflows: &'a dyn Workflows,
    /// Results of pure nodes.
    pub cache: &'a Cache,
}

/// A row of the journal.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The super-step, from 1; that of the outermost graph.
    pub step: u32,
    /// The node's name; `outer/inner` inside a sub-workflow, `outer[3]` for an item of a `for_each` and for a call of an
    /// agent's model, `outer[3].tool[0]` for a tool that this call asked for.
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
    /// What a resumed attempt has to know, JSON; of an attempt whose start is recorded.
    pub note: Option<Value>,
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
        /// The result, JSON.
        result: String,
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
    /// An attempt begins. Nothing depends on this being stored.
    fn begins(&self, _row: &StepRecord) {}

    /// Hands a row over. The order of calls is the order of the rows; the future ends when the row is durable.
    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>>;
}

/// Where what a run says goes: to a chat's message, or to whoever watches the run.
///
/// What is handed over is taken when its future is polled first, and stays taken if that is dropped then: a node may be
/// given up while it waits for room.
#[async_trait]
pub trait Output: Send + Sync {
    /// Takes the next piece of the current message; waits when the receiver cannot keep up.
    async fn text(&self, node: &str, piece: &str);

    /// The last `bytes` bytes of the current message are of an attempt that has failed: they do not stand.
    async fn rewind(&self, node: &str, bytes: usize);

    /// What follows is another message, unless nothing stands in the current one.
    async fn new_message(&self);

    /// What the run is doing, one line; not kept.
    async fn progress(&self, text: &str);

    /// A message outside the conversation; not kept.
    async fn notice(&self, level: NoticeLevel, message: &str, title: Option<&str>);
}

/// A version of another workflow.
#[derive(Clone)]
pub struct Resolved {
    /// The version's id: the same workflow is found again by it, whatever was saved meanwhile.
    pub version: String,
    /// Its workflow's id.
    pub workflow: String,
    /// Ready to run.
    pub plan: Arc<Plan>,
    /// Its runnable config.
    pub config: Arc<Map<String, Value>>,
}

/// Other workflows of the same workspace.
#[async_trait]
pub trait Workflows: Send + Sync {
    /// The workflow with this handle or id, at this version or its latest.
    ///
    /// # Errors
    /// [`NodeError`] when there is none, or when it cannot be read now.
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError>;

    /// The version with this id.
    ///
    /// # Errors
    /// [`NodeError`] when it cannot be read now.
    async fn version(&self, id: &str) -> Result<Resolved, NodeError>;
}
