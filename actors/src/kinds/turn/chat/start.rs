//! The start of a turn: the request, and the rows and events to store. Pure.

use std::borrow::Cow;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use store::batch::{Batch, ContainedRow, ItemRow, RunRow, StreamRow, ThreadRow};
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
use crate::run::kind::{Progress, Run};
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
    let (thread, item) = (ThreadId(ids.thread), ItemKey(ids.item));
    // The turn's item is its message, or marks the position of the retry request.
    let again = match &new.target {
        Target::Again(_, message) => Some(Again { item: *message, asked: item, started: false }),
        Target::NewThread(_) | Target::Thread(_) | Target::Action(..) => None,
    };
    let action = match &new.target {
        Target::Action(_, action) => Some(action.clone()),
        _ => None,
    };
    let stored = new.attachments.iter().map(|attached| Attachment {
        thread_id: Some(thread.to_string()),
        ..Attachment::from(&attached.stored)
    });
    let attachments: Vec<Attachment> = stored.collect();
    let body = ItemBody::UserMessage {
        content: new.input.content.clone(),
        attachments,
        quoted_text: new.input.quoted_text.clone(),
        inference_options: new.input.inference_options.clone(),
    };
    let (id, thread_id) = (item.wire(body.prefix()), thread.to_string());
    let user_message = ThreadItem { id, thread_id, created_at: created_at.clone(), body };
    let inputs = json!({
        "message": new.input.model_text(),
        "thread_id": thread.to_string(),
        "attachments": new.attachments.iter().map(Attached::as_input).collect::<Vec<_>>(),
        "quoted_text": new.input.quoted_text,
        "inference_options": new.input.inference_options,
        "metadata": new.metadata,
        "action": action,
    });
    let mut batch = Batch {
        runs: vec![RunRow {
            id: ids.run,
            workspace_id: new.workspace,
            workflow_id: new.workflow,
            version_id: new.version.id,
            trigger: TRIGGER,
            thread_id: Some(thread),
            stream_id: Some(ids.stream),
            inputs: to_json(&inputs),
            options: options(again, new.session.as_deref(), new.base.as_deref()),
            created_at: now,
        }],
        streams: vec![StreamRow {
            id: ids.stream,
            run_id: ids.run,
            workflow_id: new.workflow,
            thread_id: Some(thread),
            dialect: Some(new.dialect),
        }],
        ..Batch::default()
    };
    let mut events = Vec::with_capacity(4);
    let (mut titled, mut first) = (None, None);
    if let Target::NewThread(owner) = new.target {
        let title = title_of_message(&new.input.content);
        let made = Thread {
            id: thread.to_string(),
            created_at,
            status: ThreadStatus::Active,
            items: Page::default(),
            title: None,
            allowed_image_domains: None,
            metadata: Map::new(),
        };
        if title.is_some() {
            titled = Some(Thread { title: title.clone(), ..made.clone() });
        }
        events.push(ChatEvent::ThreadCreated { thread: made });
        batch.threads.push(ThreadRow {
            id: thread,
            workflow_id: new.workflow,
            workspace_id: new.workspace,
            owner_kind: owner.kind,
            owner_id: owner.id,
            title,
            requires_cookie: owner.has_cookie,
            canary_version: new.canary.as_ref().and_then(|canary| canary.version.number),
            created_at: now,
        });
    }
    let cut = |again: &Again| match seen {
        Some(seen) => again.cut(thread, seen.until, seen.kept),
        None => again.cut(thread, item, again.item),
    };
    match again {
        Some(again) => batch.cuts.push(cut(&again)),
        None if action.is_some() => {}
        None => {
            let content = to_json(&user_message);
            batch.items.push(ItemRow {
                thread_id: thread,
                id: item,
                content,
                answers: None,
                run_id: None,
                key: None,
            });
            first = (!batch.threads.is_empty()).then(|| user_message.clone());
            let contained = new.attachments.iter();
            batch.contained.extend(
                contained
                    .map(|attached| ContainedRow { attachment: attached.stored.id.0, thread_id: thread }),
            );
            events.push(ChatEvent::ItemDone { item: with_previews(user_message, &new.attachments) });
        }
    }
    events.push(ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } });
    // The title comes from the message, so its event follows the message.
    events.extend(titled.map(|thread| ChatEvent::ThreadUpdated { thread }));
    let mut frames = String::with_capacity(1024);
    let mut next_seq = 1;
    for event in &events {
        sse::push_event(&mut frames, ids.stream, next_seq, &to_json(event));
        next_seq += 1;
    }
    let events = EventFrames {
        stream: ids.stream,
        first_seq: 1,
        last_seq: next_seq - 1,
        frames,
        end: false,
        kept: false,
    };
    let run = Run {
        id: ids.run,
        stream: ids.stream,
        workspace: new.workspace,
        workflow: new.workflow,
        version: Some(new.version),
        inputs,
        trigger: Cow::Borrowed(TRIGGER),
        placed: false,
        parked: 0,
        progress: Progress::New { next_seq },
        early: Mutex::default(),
        own: Turn {
            thread,
            dialect: new.dialect,
            order: ids.run,
            session: new.session,
            base: new.base,
            continues: None,
            again,
            user_item: action.is_none().then(|| again.map_or(item, |again| again.item)),
            first,
            retitled: Mutex::default(),
        },
    };
    let rows = StartRows {
        workspace: new.workspace,
        stream: ids.stream,
        batch,
        events: Some(events),
        queued: false,
    };
    (rows, run)
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
