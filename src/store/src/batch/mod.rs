//! What a lane commits: rows of many streams in one statement.
//!
//! One commit is one prepared statement with a CTE for each table that has rows, its values as arrays. It is its
//! own transaction, so there is neither BEGIN nor COMMIT to wait for. Each row is written once however often it
//! is sent: a resend after a broken connection is harmless.

mod columns;
mod connection;
mod statement;

use chrono::{DateTime, NaiveDate, Utc};
use kernel::{ItemKey, ThreadId};
use uuid::Uuid;
use wire::chat::Dialect;

pub use connection::{LaneConnection, LaneError};

use crate::RunStatus;

/// Bytes of the largest result that stands in its journal row.
pub const INLINE_RESULT: usize = 8 << 10;

/// A thread to make.
#[derive(Debug, Clone)]
pub struct ThreadRow {
    /// Its id.
    pub id: ThreadId,
    /// The workflow it belongs to.
    pub workflow_id: Uuid,
    /// The workspace of the workflow.
    pub workspace_id: Uuid,
    /// `visitor`, `session`, `user` or `anyone`.
    pub owner_kind: &'static str,
    /// The owner's id, if the kind has one.
    pub owner_id: Option<String>,
    /// Its title, if it begins with one.
    pub title: Option<String>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// A thread item to add.
#[derive(Debug, Clone)]
pub struct ItemRow {
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its key.
    pub id: ItemKey,
    /// A `wire::chat::ThreadItem` as JSON.
    pub content: String,
    /// The user's message that it answers; `None` for a user's message.
    pub answers: Option<ItemKey>,
}

/// Items that a retry takes out of a thread.
#[derive(Debug, Clone, Copy)]
pub struct CutRow {
    /// The thread.
    pub thread_id: ThreadId,
    /// What is before it is out.
    pub id: ItemKey,
    /// What is up to it stays.
    pub behind: ItemKey,
    /// Users' messages from here on stay.
    pub messages_from: ItemKey,
    /// What is no user's message stays up to here.
    pub answers_behind: ItemKey,
}

/// A run to make.
#[derive(Debug, Clone)]
pub struct RunRow {
    /// UUIDv7.
    pub id: Uuid,
    /// The workspace of the workflow.
    pub workspace_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// The frozen version it runs.
    pub version_id: Uuid,
    /// What began it: `chat` or `api`.
    pub trigger: &'static str,
    /// Its thread, for a turn.
    pub thread_id: Option<ThreadId>,
    /// Its stream.
    pub stream_id: Option<Uuid>,
    /// JSON.
    pub inputs: String,
    /// What was asked for beside the inputs, JSON.
    pub options: Option<String>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// How a run stands now. A run that has finished does not change any more, and one of another writer neither.
#[derive(Debug, Clone)]
pub struct RunUpdate {
    /// The run.
    pub id: Uuid,
    /// Its state.
    pub status: RunStatus,
    /// When it began to run; the first one stays.
    pub started_at: Option<DateTime<Utc>>,
    /// JSON.
    pub output: Option<String>,
    /// JSON `{code, message, node}`.
    pub error: Option<String>,
    /// When it ended, if it has.
    pub finished_at: Option<DateTime<Utc>>,
    /// Which time this is that it goes into the queue, from 1; 0: it does not. Each time counts once, however often it
    /// is sent: another writer may have claimed the run since.
    pub parking: i32,
}

/// A stream to make.
#[derive(Debug, Clone, Copy)]
pub struct StreamRow {
    /// UUIDv7.
    pub id: Uuid,
    /// The run that writes it.
    pub run_id: Uuid,
    /// The run's workflow.
    pub workflow_id: Uuid,
    /// The run's thread.
    pub thread_id: Option<ThreadId>,
    /// Who its texts are written for; `None`: it is not a chat's, but a run's.
    pub dialect: Option<Dialect>,
}

/// A row of the journal. The same attempt may be sent again with its outcome.
#[derive(Debug, Clone)]
pub struct StepRow {
    /// The run.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
    /// The super-step, from 1.
    pub step: i32,
    /// Whether the attempt's start was sent before.
    pub begun: bool,
    /// `started`, `succeeded` or `failed`.
    pub status: &'static str,
    /// SHA-256 of what the node was given.
    pub input_digest: Vec<u8>,
    /// JSON; over [`INLINE_RESULT`] it is stored as a blob.
    pub result: Option<String>,
    /// JSON `{code, message}`.
    pub error: Option<String>,
    /// What a resumed attempt has to know, JSON; of an attempt whose start is sent.
    pub note: Option<String>,
    /// When it began.
    pub started_at: DateTime<Utc>,
    /// When it ended, if it has.
    pub finished_at: Option<DateTime<Utc>>,
}

/// What another run has done that a new one does not do again.
#[derive(Debug, Clone, Copy)]
pub struct CopyRow {
    /// The run that did it.
    pub from: Uuid,
    /// The new run.
    pub to: Uuid,
    /// Steps before this super-step are copied.
    pub before: i32,
}

/// A question that a run asks; asked once for each attempt.
#[derive(Debug, Clone)]
pub struct QuestionRow {
    /// The run.
    pub run_id: Uuid,
    /// The node's name.
    pub node: String,
    /// Which visit of the node, from 1.
    pub visit: i32,
    /// Which attempt of the visit, from 1.
    pub attempt: i32,
    /// By which an answer names it.
    pub key: String,
    /// For the person who answers.
    pub message: Option<String>,
    /// JSON Schema of the answer.
    pub schema: Option<String>,
    /// Who may answer, a JSON list.
    pub audience: serde_json::Value,
    /// When.
    pub asked_at: DateTime<Utc>,
    /// When it is too late.
    pub expires_at: Option<DateTime<Utc>>,
}

/// A run without a writer until one claims it from the queue; with its [`RunRow`], or with the [`RunUpdate`] that parks
/// it.
#[derive(Debug, Clone, Copy)]
pub struct QueueRow {
    /// The run.
    pub run_id: Uuid,
    /// Its workflow.
    pub workflow_id: Uuid,
    /// Whether it only waits for its turn among the runs of its workflow.
    pub turn: bool,
    /// When it is due; `None`: it waits for an answer alone.
    pub due_at: Option<DateTime<Utc>>,
}

/// A request to send once its step's row is there.
#[derive(Clone)]
pub struct OutboxRow {
    /// The same for every writer.
    pub id: Uuid,
    /// The run.
    pub run_id: Uuid,
    /// JSON; names secrets and holds none.
    pub request: String,
    /// When.
    pub created_at: DateTime<Utc>,
}

impl std::fmt::Debug for OutboxRow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutboxRow").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Events of one stream, as the text that is sent.
#[derive(Debug, Clone)]
pub struct EventsRow {
    /// The stream.
    pub stream_id: Uuid,
    /// Sequence number of the first event.
    pub first_seq: u64,
    /// Sequence number of the last event.
    pub last_seq: u64,
    /// The events as server-sent events.
    pub frames: String,
}

/// Rows that are committed together or not at all.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Threads to make.
    pub threads: Vec<ThreadRow>,
    /// Items to add.
    pub items: Vec<ItemRow>,
    /// Items to take out.
    pub cuts: Vec<CutRow>,
    /// Runs to make.
    pub runs: Vec<RunRow>,
    /// Streams to make.
    pub streams: Vec<StreamRow>,
    /// Journal rows.
    pub steps: Vec<StepRow>,
    /// Journal rows of other runs to copy.
    pub copies: Vec<CopyRow>,
    /// Requests to send.
    pub outbox: Vec<OutboxRow>,
    /// How runs stand.
    pub updates: Vec<RunUpdate>,
    /// What runs ask.
    pub questions: Vec<QuestionRow>,
    /// Runs that go into the queue.
    pub queued: Vec<QueueRow>,
    /// Runs that give their place among the runs of their workflow back; each with its [`RunUpdate`].
    pub left: Vec<Uuid>,
    /// Events.
    pub events: Vec<EventsRow>,
}

impl Batch {
    /// Whether there is nothing to commit.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.threads.is_empty()
            && self.items.is_empty()
            && self.cuts.is_empty()
            && self.runs.is_empty()
            && self.streams.is_empty()
            && self.steps.is_empty()
            && self.copies.is_empty()
            && self.outbox.is_empty()
            && self.updates.is_empty()
            && self.questions.is_empty()
            && self.queued.is_empty()
            && self.left.is_empty()
            && self.events.is_empty()
    }

    /// Adds another batch's rows behind these.
    pub fn append(&mut self, mut other: Self) {
        self.threads.append(&mut other.threads);
        self.items.append(&mut other.items);
        self.cuts.append(&mut other.cuts);
        self.runs.append(&mut other.runs);
        self.streams.append(&mut other.streams);
        self.steps.append(&mut other.steps);
        self.copies.append(&mut other.copies);
        self.outbox.append(&mut other.outbox);
        self.updates.append(&mut other.updates);
        self.questions.append(&mut other.questions);
        self.queued.append(&mut other.queued);
        self.left.append(&mut other.left);
        self.events.append(&mut other.events);
    }

    /// Rough size of the texts, bytes: keeps a commit from growing without bound.
    #[must_use]
    pub fn weight(&self) -> usize {
        let items: usize = self.items.iter().map(|row| row.content.len()).sum();
        let runs: usize = self.runs.iter().map(|row| row.inputs.len()).sum();
        let steps: usize = self.steps.iter().map(|row| row.result.as_ref().map_or(0, String::len)).sum();
        let outbox: usize = self.outbox.iter().map(|row| row.request.len()).sum();
        let updates: usize = self.updates.iter().map(|row| row.output.as_ref().map_or(0, String::len)).sum();
        let events: usize = self.events.iter().map(|row| row.frames.len()).sum();
        items + runs + steps + outbox + updates + events
    }
}

/// The UTC day in a UUIDv7: the partition of a stream's events.
#[must_use]
pub fn day_of(id: Uuid) -> NaiveDate {
    let (seconds, nanos) = id.get_timestamp().map_or((0, 0), |time| time.to_unix());
    let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
    DateTime::from_timestamp(seconds, nanos).unwrap_or_default().date_naive()
}
