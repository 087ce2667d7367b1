//! What the engine needs from outside.

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
    /// What gets every call of them.
    pub observer: &'a dyn ModelObserver,
    /// Where code of users runs.
    pub sandbox: &'a Sandbox,
    /// Other workflows.
    pub workflows: &'a dyn Workflows,
    /// What people answer.
    pub answers: &'a dyn Answers,
    /// Secrets that graphs name.
    pub credentials: &'a dyn Credentials,
    /// Search indexes of the workspace.
    pub search: &'a dyn SearchIndex,
    /// Collections of the app that the run belongs to.
    pub collections: &'a dyn Collections,
    /// Files of the run's thread.
    pub attachments: &'a dyn Attachments,
    /// Databases that graphs name.
    pub databases: &'a dyn Databases,
    /// Sends requests to addresses that graphs name.
    pub outbound: &'a Outbound,
    /// Results that replace executions; `None`: every node is executed.
    pub rehearsal: Option<&'a dyn Rehearsal>,
    /// Results of pure nodes.
    pub cache: &'a Cache,
    /// Who of the run is at work.
    pub activity: &'a Activity,
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
    /// The prompts of the config that its templates have read, sorted.
    pub prompts_read: Vec<String>,
    /// What a model was asked, of an attempt in a [`Rehearsal`] whose instructions read prompts with `demos_trainable`.
    pub example: Option<ExampleInputs>,
    /// What evaluators read of an attempt in a [`Rehearsal`].
    pub seen: Option<Box<SeenAttempt>>,
    /// When the attempt began.
    pub started_at: DateTime<Utc>,
    /// What a resumed attempt has to know, JSON; of an attempt whose start is recorded.
    pub note: Option<Value>,
    /// What a person is asked for, of an attempt that waits for an answer.
    pub question: Option<Question>,
    /// What the attempt itself has used of models, without what ran inside of it.
    pub spending: Option<Spending>,
    /// What is to be sent once the row is durable, and only then: both are committed together.
    pub delivery: Option<Delivery>,
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

    /// Waits while the run should give way, or what it has handed over is too much already; `None` if it may go on.
    fn room(&self) -> Option<BoxFuture<'_, ()>> {
        None
    }

    /// Waits until the start of the run is durable; `None` if it is. Nothing outside happens before.
    fn started(&self) -> Option<BoxFuture<'_, Result<(), JournalError>>> {
        None
    }

    /// Hands a row over. The order of calls is the order of the rows; the future ends when the row is durable.
    fn record(&self, row: StepRecord) -> BoxFuture<'static, Result<(), JournalError>>;
}

/// An item that a node sends to the readers of a chat.
#[derive(Debug, Clone, PartialEq)]
pub struct SentItem {
    /// Name of the item, unique in its thread. An item with the key of an earlier one replaces it.
    pub key: Option<String>,
    /// What it contains; `None` removes the item with the key.
    pub body: Option<ItemBody>,
    /// Whether it stays open for the next state of this key. An item that is complete already is replaced instead.
    pub more: bool,
}

/// An annotation of the current message.
#[derive(Debug, Clone, PartialEq)]
pub struct SentAnnotation {
    /// What it points at.
    pub source: Source,
    /// Unicode characters between its place and the end of the message so far.
    pub from_end: usize,
}

/// What readers receive at once, whatever nodes before it in the file still write. It is not an item.
#[derive(Debug, Clone, PartialEq)]
pub enum ImmediateEvent {
    /// What the run is doing, one line.
    Progress(String),
    /// A message outside the conversation.
    Notice {
        /// How urgent.
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

/// What changes of a chat's thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ThreadChange {
    /// Its title.
    pub title: Option<String>,
    /// Whether it accepts messages.
    pub status: Option<ThreadStatus>,
    /// Hosts that images of widgets may come from; `Some(None)`: no list.
    pub image_domains: Option<Option<Vec<String>>>,
}

/// A part of the output of an attempt that has failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Undone {
    /// So many bytes at the end of the current message.
    Text(usize),
    /// So many bytes at the end of the last complete message.
    Message(usize),
    /// The last item, or the last change of one.
    Item,
}

/// Where what a run says goes: to a chat's message, or to the readers of the run.
///
/// What is handed over is taken when its future is polled first, and stays taken if that is dropped then: a node may be
/// given up while it waits for room.
#[async_trait]
pub trait Output: Send + Sync {
    /// Takes the next piece of the current message; waits when the receiver cannot keep up.
    async fn text(&self, node: &str, piece: &str);

    /// Takes annotations of the current message. They are taken back with the text that was taken before them.
    async fn annotate(&self, annotations: Vec<SentAnnotation>);

    /// Takes back these parts, the last first: the attempt that sent them has failed.
    async fn undo(&self, node: &str, parts: &[Undone]);

    /// Makes ready to take an item with this key. Nothing is taken: this may be dropped, and be without need.
    async fn look_up(&self, _key: &str) {}

    /// Sends an item. It completes the current message.
    async fn item(&self, item: SentItem);

    /// What follows is another message, unless nothing stands in the current one.
    async fn new_message(&self);

    /// Sends an event at once.
    async fn immediate(&self, event: ImmediateEvent);

    /// Changes the thread of a chat, and tells readers if anything differs.
    async fn change_thread(&self, change: ThreadChange);
}

/// Replaces executions: a case of a training sends no mail and waits for nothing.
pub trait Rehearsal: Send + Sync {
    /// The result of a visit whose node is not executed; `node` as in [`StepRecord::node`].
    fn mock(&self, node: &str, visit: u32) -> Option<Value>;

    /// Whether a node that may change something outside is executed if it has no such result.
    fn may_send(&self) -> bool;
}

/// Takes no row and no text: where nothing is executed.
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
    /// The version's id: the same workflow is found again by it, whatever was saved meanwhile.
    pub version: String,
    /// Its workflow's id.
    pub workflow: String,
    /// Ready to run.
    pub plan: Arc<Plan>,
    /// Its runnable config.
    pub config: Arc<Map<String, Value>>,
}

/// What a run asks of people.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// By which an answer names it.
    pub key: String,
    /// For the person who answers.
    pub message: Option<String>,
    /// JSON Schema that an answer has to fit.
    pub schema: Option<Value>,
    /// Who may answer: `role:<role>` or addresses; empty: every caller who may execute the workflow.
    pub audience: Vec<String>,
    /// When it is too late.
    pub expires_at: Option<DateTime<Utc>>,
    /// The pending item that asks in a chat; `None` if only the interface of runs asks.
    pub item: Option<ItemBody>,
    /// Whether the run continues if no answer comes in time.
    pub continues_without: bool,
}

/// What a person has answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// The answer; fits the question's schema.
    pub value: Value,
    /// Who, where that is known.
    pub by: Option<String>,
    /// When.
    pub at: DateTime<Utc>,
}

/// Names one attempt of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StepKey<'a> {
    /// The node, as in [`StepRecord::node`].
    pub node: &'a str,
    /// Which visit, from 1.
    pub visit: u32,
    /// Which attempt of the visit, from 1.
    pub attempt: u32,
}

/// What people answer.
#[async_trait]
pub trait Answers: Send + Sync {
    /// Ends with the answer to the question of an attempt, whenever it comes.
    ///
    /// # Errors
    /// [`JournalError`] when it will never be known here.
    async fn answer(&self, step: StepKey<'_>) -> Result<Answer, JournalError>;

    /// The answer, if it is there. Errors as [`Self::answer`].
    async fn stored(&self, step: StepKey<'_>) -> Result<Option<Answer>, JournalError>;
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

/// The vault of the same workspace.
#[async_trait]
pub trait Credentials: Send + Sync {
    /// The secrets with these names as they are now, in the same order.
    ///
    /// # Errors
    /// [`NodeError`] that names one that is not there, or says why they cannot be read now.
    async fn resolve(&self, names: &[String]) -> Result<Vec<Secret>, NodeError>;

    /// Those of the secrets with these names that are there and can be opened.
    ///
    /// # Errors
    /// [`NodeError`] when they cannot be read now.
    async fn those_there(&self, names: &[String]) -> Result<Vec<Secret>, NodeError>;
}
