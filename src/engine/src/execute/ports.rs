//! The engine's interfaces to the outside.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::future::BoxFuture;
use kernel::{Clock, Random, Secret};
use sandbox::Sandbox;
use serde_json::{Map, Value};
use wire::chat::{ItemBody, NoticeLevel, Source, ThreadStatus};

pub use net::{Client as Outbound, Host};

pub use super::attachments::{
    AttachedFile, Attachments, Look, NewImage, NoAttachments, Room, attachment_not_found,
};
pub use super::collections::{CollectionPut, CollectionQuery, Collections, NoCollections, no_app};
use super::delivery::Delivery;
pub use super::example::ExampleInputs;
pub use super::observer::{ModelCall, ModelObserver, WithinBudget};
pub use super::seen::{SeenAttempt, SeenCall};
pub use super::spending::{ModelBudget, Spending};
pub use super::stores::{DatabaseQuery, DatabaseRows, Databases, FoundChunk, SearchIndex};
use crate::cache::Cache;
use crate::{Activity, NodeError, Plan};
use models::Models;

/// The services that a run works with.
#[derive(Clone, Copy)]
pub struct Ports<'a> {
    /// The destination of rows.
    pub journal: &'a dyn Journal,
    /// The destination of texts.
    pub output: &'a dyn Output,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// Randomness, for waits between attempts.
    pub random: &'a dyn Random,
    /// Language models.
    pub models: &'a Models,
    /// Receives every model call.
    pub observer: &'a dyn ModelObserver,
    /// The sandbox for user code.
    pub sandbox: &'a Sandbox,
    /// Other workflows.
    pub workflows: &'a dyn Workflows,
    /// People's answers.
    pub answers: &'a dyn Answers,
    /// Secrets that graphs name.
    pub credentials: &'a dyn Credentials,
    /// Search indexes of the workspace.
    pub search: &'a dyn SearchIndex,
    /// Collections of the run's app.
    pub collections: &'a dyn Collections,
    /// Files in the run's thread.
    pub attachments: &'a dyn Attachments,
    /// Databases that graphs name.
    pub databases: &'a dyn Databases,
    /// Client for addresses that graphs name.
    pub outbound: &'a Outbound,
    /// Results that replace executions; `None`: every node is executed.
    pub rehearsal: Option<&'a dyn Rehearsal>,
    /// Results of pure nodes.
    pub cache: &'a Cache,
    /// Tracks which of the run's tasks are working.
    pub activity: &'a Activity,
}

/// A journal row.
#[derive(Debug, Clone, PartialEq)]
pub struct StepRecord {
    /// The outermost graph's super-step, from 1.
    pub step: u32,
    /// The node's name: `outer/inner` inside a sub-workflow; `outer[3]` for a `for_each` item or an agent's model
    /// call; `outer[3].tool[0]` for a tool that this call requested.
    pub node: String,
    /// The node's visit, from 1.
    pub visit: u32,
    /// The visit's attempt, from 1.
    pub attempt: u32,
    /// Whether the journal already has a start row for this attempt.
    pub begun: bool,
    /// SHA-256 of the node's input.
    pub input_digest: [u8; 32],
    /// The config prompts that its templates have read, sorted.
    pub prompts_read: Vec<String>,
    /// The model's inputs, if the attempt is in a [`Rehearsal`] and its instructions read prompts with
    /// `demos_trainable`.
    pub example: Option<ExampleInputs>,
    /// The trace for evaluators, if the attempt is in a [`Rehearsal`].
    pub seen: Option<Box<SeenAttempt>>,
    /// Start time.
    pub started_at: DateTime<Utc>,
    /// Data that a resumed attempt needs, as JSON; set if the attempt's start is recorded.
    pub note: Option<Value>,
    /// The question to a person, if the attempt waits for an answer.
    pub question: Option<Question>,
    /// Model usage by the attempt itself, without nested nodes.
    pub spending: Option<Spending>,
    /// The request to send once the row is durable, and only then: both are committed together.
    pub delivery: Option<Delivery>,
    /// The attempt's outcome.
    pub outcome: StepOutcome,
}

/// The state of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum StepOutcome {
    /// Begun, not ended.
    Started,
    /// It has a result.
    Succeeded {
        /// The result as JSON.
        result: String,
        /// End time.
        finished_at: DateTime<Utc>,
    },
    /// It failed.
    Failed {
        /// The cause.
        error: NodeError,
        /// End time.
        finished_at: DateTime<Utc>,
    },
}

/// The journal could not store a row; the run cannot continue here.
#[derive(Debug, Clone, thiserror::Error)]
#[error("failed to store a journal row: {0}")]
pub struct JournalError(pub String);

/// The destination of rows.
pub trait Journal: Send + Sync {
    /// Announces that an attempt begins. Nothing depends on this being stored.
    fn begins(&self, _row: &StepRecord) {}

    /// Returns a wait if the run should yield or has submitted too much; `None` if it may continue.
    fn room(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Waits until the run's start is durable; `None` if it is. No external effect happens before.
    fn started(&self) -> Option<BoxFuture<'_, Result<(), JournalError>>> {
        None
    }

    /// Submits a row. Rows are stored in call order; the future resolves when the row is durable.
    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>>;
}

/// An item that a node sends to a chat's readers.
#[derive(Debug, Clone, PartialEq)]
pub struct SentItem {
    /// Item name, unique in its thread. A later item with the same key replaces an earlier one.
    pub key: Option<String>,
    /// The content; `None` removes the item with the key.
    pub body: Option<ItemBody>,
    /// Whether it stays open for this key's next state. An item that is already complete is replaced instead.
    pub more: bool,
}

/// An annotation on the current message.
#[derive(Debug, Clone, PartialEq)]
pub struct SentAnnotation {
    /// The source that it refers to.
    pub source: Source,
    /// Unicode characters from its position to the current end of the message.
    pub from_end: usize,
}

/// An event that readers receive immediately, even while earlier nodes in the file still write. It is not an item.
#[derive(Debug, Clone, PartialEq)]
pub enum ImmediateEvent {
    /// The run's current activity, one line.
    Progress(String),
    /// A message outside the conversation.
    Notice {
        /// Urgency.
        level: NoticeLevel,
        /// Markdown.
        message: String,
        /// A heading.
        title: Option<String>,
    },
    /// An action for the page.
    Effect {
        /// Its name.
        name: String,
        /// Its data.
        data: Map<String, Value>,
    },
}

/// A change to a chat's thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadChange {
    /// Its title.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: Option<ThreadStatus>,
    /// Allowed hosts for widget images; `Some(None)`: no list.
    pub image_domains: Option<Option<Vec<String>>>,
}

/// A part of a failed attempt's output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// This many bytes at the end of the current message.
    Text(usize),
    /// This many bytes at the end of the last complete message.
    Message(usize),
    /// The last item or item change.
    Item,
}

/// The destination of a run's output: a chat's message, or the run's readers.
///
/// Output is accepted when its future is first polled, and stays accepted if the future is then dropped: a node may
/// be abandoned while it waits for room.
#[async_trait]
pub trait Output: Send + Sync {
    /// Accepts the next piece of the current message; waits if the receiver cannot keep up.
    async fn text(&self, node: &str, piece: &str);

    /// Accepts annotations on the current message. They are undone together with the text that they follow.
    async fn annotate(&self, annotations: Vec<SentAnnotation>);

    /// Takes back these parts, last first: the attempt that sent them has failed.
    async fn undo(&self, node: &str, parts: &[Undone]);

    /// Prefetches the item with this key. Accepts no output: the future may be dropped, and may be unnecessary.
    async fn look_up(&self, _key: &str) {}

    /// Sends an item, which completes the current message.
    async fn item(&self, item: SentItem);

    /// Starts a new message, unless the current one is empty.
    async fn new_message(&self);

    /// Sends an event immediately.
    async fn immediate(&self, event: ImmediateEvent);

    /// Changes a chat's thread, and notifies readers if anything differs.
    async fn change_thread(&self, change: ThreadChange);
}

/// Replaces executions: a training case sends no mail and never waits.
pub trait Rehearsal: Send + Sync {
    /// Returns the mocked result of a visit, whose node is then not executed; `node` as in [`StepRecord::node`].
    fn mock(&self, node: &str, visit: u32) -> Option<Value>;

    /// Whether a node that may change external state is executed if it has no mocked result.
    fn may_send(&self) -> bool;
}

/// Accepts no rows and no text, where nothing is executed.
pub struct Nowhere;

impl Journal for Nowhere {
    fn record(&self, _row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>> {
        Box::pin(async { Err(JournalError("nothing is executed".to_owned())) })
    }
}

#[async_trait]
impl Output for Nowhere {
    async fn text(&self, _node: &str, _piece: &str) {}

    async fn annotate(&self, _annotations: Vec<SentAnnotation>) {}

    async fn undo(&self, _node: &str, _parts: &[Undone]) {}

    async fn item(&self, _item: SentItem) {}

    async fn new_message(&self) {}

    async fn immediate(&self, _event: ImmediateEvent) {}

    async fn change_thread(&self, _change: ThreadChange) {}
}

/// A version of another workflow.
#[derive(Clone)]
pub struct Resolved {
    /// The version's id: it finds the same workflow again, whatever was saved since.
    pub version: String,
    /// Its workflow's id.
    pub workflow: String,
    /// The plan, ready to run.
    pub plan: Arc<Plan>,
    /// Its runnable config.
    pub config: Arc<Map<String, Value>>,
}

/// A question that a run asks people.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// The key by which an answer names the question.
    pub key: String,
    /// Text for the person who answers.
    pub message: Option<String>,
    /// JSON Schema for an answer.
    pub schema: Option<Value>,
    /// Allowed responders: `role:<role>` or addresses; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// Expiry.
    pub expires_at: Option<DateTime<Utc>>,
    /// The pending item that asks in a chat; `None` if only the runs API asks.
    pub item: Option<ItemBody>,
    /// Whether the run continues without an answer in time.
    pub continues_without: bool,
}

/// A person's answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer; matches the question's schema.
    pub value: Value,
    /// The person, if known.
    pub by: Option<String>,
    /// Answer time.
    pub at: DateTime<Utc>,
}

/// Identifies one attempt in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepKey<'a> {
    /// The node, as in [`StepRecord::node`].
    pub node: &'a str,
    /// The visit, from 1.
    pub visit: u32,
    /// The visit's attempt, from 1.
    pub attempt: u32,
}

/// People's answers.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Waits for the answer to an attempt's question, however long it takes.
    ///
    /// # Errors
    /// [`JournalError`] if the answer will never be known here.
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError>;

    /// Returns the answer, if stored. Errors as [`Self::answer`].
    async fn stored(&self, step: StepKey<'_>) -> Result<Option<Answer>, JournalError>;
}

/// Other workflows in the same workspace.
#[async_trait]
pub trait Workflows: Send + Sync {
    /// Finds the workflow with this handle or id, at this version or its latest.
    ///
    /// # Errors
    /// [`NodeError`] if it does not exist, or cannot be read now.
    async fn find(&self, workflow: &str, version: Option<u32>) -> Result<Resolved, NodeError>;

    /// Returns the version with this id.
    ///
    /// # Errors
    /// [`NodeError`] if it cannot be read now.
    async fn version(&self, id: &str) -> Result<Resolved, NodeError>;
}

/// The vault of the same workspace.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// Returns the current secrets with these names, in the same order.
    ///
    /// # Errors
    /// [`NodeError`] that names a missing secret, or says why the secrets cannot be read now.
    async fn resolve(&self, names: &[String]) -> Result<Vec<Secret>, NodeError>;

    /// Returns those secrets that exist and can be decrypted.
    ///
    /// # Errors
    /// [`NodeError`] if the secrets cannot be read now.
    async fn those_there(&self, names: &[String]) -> Result<Vec<Secret>, NodeError>;
}
