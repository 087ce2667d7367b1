//! The start of a turn: the request, and the rows and events to store. Pure.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use store::batch::{Batch, ContainedRow, ItemRow, ThreadRow};
use store::{OwnerKind, StoredAttachment};
use uuid::Uuid;
use wire::chat::{
    Attachment, ChatEvent, Dialect, ItemBody, Page, StreamOptions, Thread, ThreadItem, ThreadStatus,
    UserMessageInput, title_of_message,
};
use wire::{BusyThread, sse};

use super::title::NewTitle;
use crate::kinds::turn::{Again, TRIGGER, Turn, TurnOf};
use crate::lanes::EventFrames;
use crate::plans::{Canary, LoadedVersion};
use crate::run::kind::{RunProgress, RunStart};
use crate::run::start::{IdempotencyKey, StartIds, StartRows};
use crate::text::{json as to_json, timestamp};

/// The owner of a new thread.
#[derive(Debug, Clone)]
pub struct Owner {
    /// Its kind.
    pub kind: OwnerKind,
    /// The id, if the kind has one.
    pub id: Option<String>,
    /// Whether the request has presented the visitor's cookie.
    pub has_cookie: bool,
}

/// The target of a message.
#[derive(Debug, Clone)]
pub enum Target {
    /// A new thread with this owner.
    NewThread(Owner),
    /// An existing thread.
    Thread(ThreadId),
    /// A thread, for an action by one of its widgets or the page; without a message.
    Action(ThreadId, Box<ActionInput>),
    /// A message already in the thread: it is answered again, without the items after it.
    Again(ThreadId, ItemKey),
}

impl Target {
    /// The thread, if it already exists.
    #[must_use]
    pub fn thread(&self) -> Option<ThreadId> {
        match self {
            Self::NewThread(_) => None,
            Self::Thread(thread) | Self::Again(thread, _) | Self::Action(thread, _) => Some(*thread),
        }
    }

    /// The message that is answered again. `position`: the position of the request.
    fn retry(&self, position: ItemKey) -> Option<Again> {
        match self {
            Self::Again(_, message) => Some(Again { item: *message, asked: position, started: false }),
            Self::NewThread(_) | Self::Thread(_) | Self::Action(..) => None,
        }
    }
}

/// An action in the form that graphs receive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActionInput {
    /// Its name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The payload as sent by the browser.
    pub payload: serde_json::Value,
    /// The widget; `None` for an action by the page itself.
    pub item_id: Option<String>,
    /// The key under which the graph replaces the widget.
    pub key: Option<String>,
    /// The widget's root as stored.
    pub widget: Option<serde_json::Value>,
}

/// An attachment to a message.
#[derive(Debug, Clone)]
pub struct Attached {
    /// The attachment.
    pub stored: StoredAttachment,
    /// The preview URL for stream readers, if the attachment is an image.
    pub preview_url: Option<String>,
}

impl Attached {
    /// The attachment in the form that graphs receive.
    fn as_input(&self) -> serde_json::Value {
        let StoredAttachment { id, name, mime_type, size, digest, .. } = &self.stored;
        let kind = if self.stored.is_image() { "image" } else { "file" };
        json!({"id": id.to_string(), "name": name, "mime_type": mime_type, "type": kind, "size": size,
               "digest": digest.map(hex::encode)})
    }
}

/// A turn to start.
pub struct NewTurn {
    /// The workflow's workspace.
    pub workspace: Uuid,
    /// The workflow.
    pub workflow: Uuid,
    /// The version to run.
    pub version: Arc<LoadedVersion>,
    /// The workflow's canary, which a new thread may use instead.
    pub canary: Option<Canary>,
    /// The message's target.
    pub target: Target,
    /// The message.
    pub input: UserMessageInput,
    /// Its attachments, in order.
    pub attachments: Vec<Attached>,
    /// Arbitrary client data.
    pub metadata: Map<String, serde_json::Value>,
    /// Dialect for its texts.
    pub dialect: Dialect,
    /// The policy while another message is being answered.
    pub busy: BusyThread,
    /// The session whose limits apply to its models.
    pub session: Option<String>,
    /// The public base URL as seen by the client, if none is configured and the workflow may show images.
    pub base: Option<String>,
    /// The settings for a new thread's generated title; `None` takes the message's first words.
    pub title: Option<NewTitle>,
    /// The request's key, if any.
    pub idempotency: Option<IdempotencyKey>,
}

/// The start options stored in the run's row, as JSON.
fn options(again: Option<Again>, session: Option<&str>, base: Option<&str>) -> Option<String> {
    let mut options = Map::new();
    options.extend(again.map(|again| ("again".to_owned(), again.options())));
    options.extend(session.map(|session| ("session".to_owned(), session.into())));
    options.extend(base.map(|base| ("base".to_owned(), base.into())));
    (!options.is_empty()).then(|| to_json(&options))
}

impl NewTurn {
    /// Selects the canary for a share of new threads, always the same one when the start is retried.
    pub(super) fn choose_version(&mut self, thread: ThreadId) {
        let is_new = matches!(self.target, Target::NewThread(_));
        let (workflow, thread) = (self.workflow.to_string(), thread.to_string());
        self.canary = self.canary.take().filter(|canary| {
            let number = canary.version.number.unwrap_or_default();
            is_new && training::uses_canary(&workflow, number, &thread, canary.percent)
        });
        if let Some(canary) = &self.canary {
            self.version = Arc::clone(&canary.version);
        }
    }

    /// The attachments that the start assigns to the thread.
    pub(super) fn claims(&self, thread: ThreadId) -> Option<(Vec<StoredAttachment>, ThreadId)> {
        let is_new = !self.attachments.is_empty() && !matches!(self.target, Target::Again(..));
        is_new.then(|| (self.attachments.iter().map(|attached| attached.stored.clone()).collect(), thread))
    }

    fn run_start(&self, ids: TurnIds, again: Option<Again>) -> RunStart {
        let thread = ThreadId(ids.thread);
        RunStart {
            id: ids.run,
            stream: ids.stream,
            workspace: self.workspace,
            workflow: self.workflow,
            version: Arc::clone(&self.version),
            trigger: TRIGGER,
            thread: Some(thread),
            dialect: Some(self.dialect),
            inputs: self.run_inputs(thread),
            options: options(again, self.session.as_deref(), self.base.as_deref()),
        }
    }

    fn run_inputs(&self, thread: ThreadId) -> serde_json::Value {
        let action = match &self.target {
            Target::Action(_, action) => Some(action),
            _ => None,
        };
        json!({
            "message": self.input.model_text(),
            "thread_id": thread.to_string(),
            "attachments": self.attachments.iter().map(Attached::as_input).collect::<Vec<_>>(),
            "quoted_text": self.input.quoted_text,
            "inference_options": self.input.inference_options,
            "metadata": self.metadata,
            "action": action,
        })
    }

    /// The message as an item of the thread.
    fn user_message(&self, thread: ThreadId, item: ItemKey, created_at: String) -> ThreadItem {
        let attachments = self.attachments.iter().map(|attached| Attachment {
            thread_id: Some(thread.to_string()),
            ..Attachment::from(&attached.stored)
        });
        let body = ItemBody::UserMessage {
            content: self.input.content.clone(),
            attachments: attachments.collect(),
            quoted_text: self.input.quoted_text.clone(),
            inference_options: self.input.inference_options.clone(),
        };
        ThreadItem { id: item.wire(body.prefix()), thread_id: thread.to_string(), created_at, body }
    }

    /// Adds the rows of the message and its attachments.
    fn add_message(&self, message: &ThreadItem, thread_id: ThreadId, id: ItemKey, batch: &mut Batch) {
        let content = to_json(message);
        batch.items.push(ItemRow { thread_id, id, content, answers: None, run_id: None, key: None });
        let attached = self.attachments.iter().map(|attached| attached.stored.id.0);
        batch.contained.extend(attached.map(|attachment| ContainedRow { attachment, thread_id }));
    }

    fn thread_row(&self, owner: &Owner, id: ThreadId, now: DateTime<Utc>) -> ThreadRow {
        ThreadRow {
            id,
            workflow_id: self.workflow,
            workspace_id: self.workspace,
            owner_kind: owner.kind,
            owner_id: owner.id.clone(),
            title: title_of_message(&self.input.content),
            requires_cookie: owner.has_cookie,
            canary_version: self.canary.as_ref().and_then(|canary| canary.version.number),
            created_at: now,
        }
    }
}

/// A turn's ids, created before anything is stored under them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct TurnIds {
    pub(super) run: Uuid,
    pub(super) stream: Uuid,
    pub(super) thread: Uuid,
    pub(super) item: [u8; ItemKey::LENGTH],
}

impl StartIds for TurnIds {
    fn run(&self) -> Uuid {
        self.run
    }

    fn stream(&self) -> Uuid {
        self.stream
    }
}

/// The thread's state when a retry was requested.
#[derive(Debug, Clone, Copy)]
pub(super) struct ThreadSnapshot {
    /// The position at which the thread was read.
    pub(super) until: ItemKey,
    /// The last answer after the message that belongs to an earlier turn.
    pub(super) kept: ItemKey,
}

/// All rows that a turn's start stores, and its first events.
///
/// `seen` is for a message that is answered again.
pub(super) fn rows(
    new: NewTurn,
    ids: TurnIds,
    seen: Option<ThreadSnapshot>,
    now: DateTime<Utc>,
) -> (StartRows, TurnOf) {
    let created_at = timestamp(now);
    // The turn's item is its message, or marks the position of the retry request.
    let (thread, item) = (ThreadId(ids.thread), ItemKey(ids.item));
    let (workspace, stream) = (new.workspace, ids.stream);
    let again = new.target.retry(item);
    let is_action = matches!(new.target, Target::Action(..));
    let start = new.run_start(ids, again);
    let mut batch = start.batch(now);
    let mut events = Vec::with_capacity(4);
    let (mut titled, mut first) = (None, None);
    if let Target::NewThread(owner) = &new.target {
        let row = new.thread_row(owner, thread, now);
        let created = new_thread(thread, created_at.clone());
        titled = row.title.clone().map(|title| Thread { title: Some(title), ..created.clone() });
        events.push(ChatEvent::ThreadCreated { thread: created });
        batch.threads.push(row);
    }
    match again {
        Some(again) => {
            let (until, kept) = seen.map_or((item, again.item), |seen| (seen.until, seen.kept));
            batch.cuts.push(again.cut(thread, until, kept));
        }
        None if is_action => {}
        None => {
            let message = new.user_message(thread, item, created_at);
            new.add_message(&message, thread, item, &mut batch);
            first = (!batch.threads.is_empty()).then(|| message.clone());
            events.push(ChatEvent::ItemDone { item: with_previews(message, &new.attachments) });
        }
    }
    events.push(ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } });
    // The title comes from the message, so its event follows the message.
    events.extend(titled.map(|thread| ChatEvent::ThreadUpdated { thread }));
    let events = first_frames(stream, &events);
    let progress = RunProgress::New { next_seq: events.last_seq + 1 };
    let turn = Turn {
        thread,
        dialect: new.dialect,
        order: ids.run,
        session: new.session,
        base: new.base,
        continues: None,
        again,
        user_item: (!is_action).then(|| again.map_or(item, |again| again.item)),
        first,
        retitled: Mutex::default(),
    };
    let rows = StartRows { workspace, stream, batch, events: Some(events), queued: false };
    (rows, start.run(progress, turn))
}

/// A new thread, as first sent to readers.
fn new_thread(id: ThreadId, created_at: String) -> Thread {
    Thread {
        id: id.to_string(),
        created_at,
        status: ThreadStatus::Active,
        items: Page::default(),
        title: None,
        allowed_image_domains: None,
        metadata: Map::new(),
    }
}

/// The stream's first events.
fn first_frames(stream: Uuid, events: &[ChatEvent]) -> EventFrames {
    let mut frames = String::with_capacity(1024);
    let mut last_seq = 0;
    for event in events {
        last_seq += 1;
        sse::push_event(&mut frames, stream, last_seq, &to_json(event));
    }
    EventFrames { stream, first_seq: 1, last_seq, frames, end: false, kept: false }
}

/// The message for stream readers: image URLs expire, so items are stored without them.
fn with_previews(mut message: ThreadItem, attached: &[Attached]) -> ThreadItem {
    if let ItemBody::UserMessage { attachments, .. } = &mut message.body {
        for (attachment, attached) in attachments.iter_mut().zip(attached) {
            attachment.preview_url.clone_from(&attached.preview_url);
        }
    }
    message
}
