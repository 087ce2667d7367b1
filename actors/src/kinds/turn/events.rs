//! What a chat turn tells its readers: the assistant's messages, items, progress, notices. Pure but for ids and time.

mod changes;
mod questions;
mod writer;

use std::collections::HashMap;
use std::sync::Arc;

use kernel::{Clock, Ids, ItemKey, ThreadId};
use serde_json::Value;
use store::FoundItem;
use store::batch::{
    ClosedQuestionsRow, ContainedRow, ItemRow, QuestionItemRow, RemovedItemRow, ReplacedItemRow,
    ThreadChangeRow, TurnSentRow,
};
use uuid::Uuid;
use wire::chat::{ChatEvent, Dialect, IncompleteReason, ItemBody, ThreadItem};

use self::changes::events_of;
use super::continuing::Continued;
use super::images::attachment_of;
use super::message::Message;
use super::sent::{Change, Item, Sent};
use crate::run::{EventWriter, ImageLinks};
use crate::text::{json, timestamp};

/// Bytes of text that are handed over without waiting for more.
const COALESCE_BYTES: usize = 512;

/// What a chat turn tells its readers.
pub(crate) struct ChatEvents {
    thread: ThreadId,
    run: Uuid,
    /// The user's message that the turn answers.
    question: Option<ItemKey>,
    /// Whether the turn fails if it shows nothing.
    needs_reply: bool,
    /// The turn that it continues.
    continued: Option<Continued>,
    /// Whether a step has ended in this run.
    has_progressed: bool,
    /// Whether this run has added an item.
    has_added: bool,
    /// As the turn has read the thread, if it may end with a question.
    messages: Option<Vec<Value>>,
    dialect: Dialect,
    ids: Ids,
    clock: Arc<dyn Clock>,
    /// Makes addresses of images, with where the client reaches the service.
    links: Option<(ImageLinks, String)>,
    /// What was sent, that of earlier lives too.
    sent: Sent,
    /// The message that is being written.
    message: Option<Message>,
    /// Whether readers know the message as a complete one: it is compared when it is complete again.
    again: bool,
    /// Of complete messages with annotations: where these were added.
    places: HashMap<ItemKey, Vec<usize>>,
    /// A message that an earlier life had begun, until the run has got to it.
    open: Option<Message>,
    /// Not told yet; before what the message has to tell.
    events: Vec<ChatEvent>,
    rows: Rows,
}

/// Rows that are committed with the events.
#[derive(Default)]
struct Rows {
    thread_changes: Vec<ThreadChangeRow>,
    items: Vec<ItemRow>,
    replaced: Vec<ReplacedItemRow>,
    removed: Vec<RemovedItemRow>,
    question_items: Vec<QuestionItemRow>,
    sent: Vec<TurnSentRow>,
    closed: Vec<ClosedQuestionsRow>,
    contained: Vec<ContainedRow>,
}

impl ChatEvents {
    /// `sent` and `open`: what an earlier life has sent, and the message that it was writing.
    pub(super) fn new(
        (thread, run, question): (ThreadId, Uuid, Option<ItemKey>),
        dialect: Dialect,
        ids: Ids,
        clock: Arc<dyn Clock>,
        (sent, open): (Sent, Option<Message>),
    ) -> Self {
        let (message, again, events, rows) = (None, false, Vec::new(), Rows::default());
        let places = HashMap::new();
        Self {
            thread,
            run,
            question,
            needs_reply: true,
            continued: None,
            has_progressed: false,
            has_added: false,
            messages: None,
            dialect,
            ids,
            clock,
            links: None,
            sent,
            message,
            again,
            places,
            open,
            events,
            rows,
        }
    }

    /// The rows of items that an earlier life has created or changed. What other turns made of them readers are told.
    pub(super) fn remember(&mut self, items: Vec<FoundItem>) {
        for change in self.sent.remember(items) {
            self.events.extend(events_of(change));
        }
    }

    /// Images get addresses. `base`: where the client reaches the service, if that is not configured.
    #[must_use]
    pub(super) fn with_links(self, links: ImageLinks, base: Option<String>) -> Self {
        Self { links: Some((links, base.unwrap_or_default())), ..self }
    }

    /// The turn may end without showing anything.
    #[must_use]
    pub(super) fn without_reply(self, may: bool) -> Self {
        Self { needs_reply: !may, ..self }
    }

    /// Whether the turn fails if it shows nothing.
    pub(super) fn needs_reply(&self) -> bool {
        self.needs_reply
    }

    /// Whether the turn has shown anything.
    pub(super) fn has_spoken(&self) -> bool {
        let text =
            |message: &Option<Message>| message.as_ref().is_some_and(|message| !message.text().is_empty());
        self.sent.is_visible() || text(&self.message)
    }

    /// Whether the current message has words in it.
    pub(super) fn has_words(&self) -> bool {
        self.message.as_ref().is_some_and(|message| !message.text().trim().is_empty())
    }

    /// A turn that did not succeed: what readers were told is kept.
    pub(super) fn keep_what_was_told(&mut self) {
        if std::mem::take(&mut self.again) {
            self.message = None;
        }
        if self.message.is_none() {
            self.message = self.open.take();
        }
        if let Some(message) = &mut self.message {
            message.keep_what_was_told();
        }
    }

    /// Completes the current message; an empty one that readers know of is taken back.
    pub(super) fn complete(&mut self) {
        self.end_message(None);
    }

    /// The run has succeeded: what it did not produce again is removed.
    pub(super) fn settle(&mut self) {
        self.complete();
        self.drop_open();
        let rest = self.sent.remove_rest();
        self.apply(rest);
        self.complete_open_items();
    }

    /// Completes the open items with their last states.
    pub(super) fn complete_open_items(&mut self) {
        let changes = self.sent.complete_open();
        self.apply(changes);
    }

    /// Removes the open items.
    pub(super) fn remove_open_items(&mut self) {
        let changes = self.sent.remove_open();
        self.apply(changes);
    }

    /// The run has ended: what it changed is not restored any more.
    pub(super) fn end_changes(&mut self) {
        let (thread_id, run_id) = (self.thread, self.run);
        for Item { id, .. } in self.sent.changed_items() {
            self.rows.replaced.push(ReplacedItemRow { thread_id, id: *id, content: None, run_id });
        }
    }

    /// Ends the current message with its partial text and the reason.
    pub(super) fn leave_incomplete(&mut self, reason: IncompleteReason) {
        self.end_message(Some(reason));
    }

    fn end_message(&mut self, incomplete: Option<IncompleteReason>) {
        let Some(mut message) = self.message.take() else { return };
        let again = std::mem::take(&mut self.again);
        if message.text().is_empty() {
            if !again {
                self.remove(&message);
            }
            return;
        }
        let (id, item) = (message.id(), message.item(incomplete));
        let places = message.places();
        if !places.is_empty() {
            self.places.insert(id, places);
        }
        if again {
            let changes = self.sent.add(id, item, None, false);
            self.apply(changes);
            return;
        }
        self.events.extend(message.finish(incomplete));
        self.insert(id, None, json(&item));
        self.sent.written(id, item);
    }

    /// Whether the current message says what the last one of the list does.
    fn is_last_known_text(&self) -> bool {
        self.message.as_ref().is_some_and(|message| self.sent.is_last_message(message.text()))
    }

    /// Takes the current message back, whatever it says.
    pub(super) fn take_back(&mut self) {
        if let Some(message) = self.message.take()
            && !std::mem::take(&mut self.again)
        {
            self.remove(&message);
        }
    }

    /// Removes a message that readers know of.
    fn remove(&mut self, message: &Message) {
        if message.is_begun() {
            self.events.push(ChatEvent::ItemRemoved { item_id: message.id().wire("msg") });
        }
    }

    /// The run is past the place of a message that an earlier life had begun, without writing it.
    fn drop_open(&mut self) {
        if let Some(open) = self.open.take() {
            self.remove(&open);
        }
    }

    /// An event behind everything that was said.
    pub(super) fn event(&mut self, event: ChatEvent) {
        self.tell();
        self.events.push(event);
    }

    fn tell(&mut self) {
        if let Some(message) = self.message.as_mut().filter(|_| !self.again) {
            self.events.extend(message.tell());
        }
    }

    /// A text at once.
    pub(super) fn whole_text(&mut self, text: &str) {
        self.text("output", text);
    }

    /// An item for the model alone; no client sees it.
    pub(super) fn note(&mut self, content: &str) {
        let Some(id) = self.id() else { return };
        let body = ItemBody::SdkHiddenContext { content: content.to_owned() };
        let (thread_id, created_at) = (self.thread.to_string(), timestamp(self.clock.now()));
        let item = ThreadItem { id: id.wire(body.prefix()), thread_id, created_at, body };
        self.insert(id, None, json(&item));
    }

    fn id(&self) -> Option<ItemKey> {
        let id = self.ids.item();
        if id.is_err() {
            tracing::error!("no random bytes for an item's id");
        }
        id.ok()
    }

    fn insert(&mut self, id: ItemKey, key: Option<String>, content: String) {
        self.has_added = true;
        let (thread_id, answers, run_id) = (self.thread, self.question, Some(self.run));
        self.rows.items.push(ItemRow { thread_id, id, content, answers, run_id, key });
    }

    /// The message that the next piece of text belongs to.
    fn next_message(&mut self) -> Option<Message> {
        self.sent.align(false);
        if let Some((id, created_at)) = self.sent.expected_message() {
            self.again = true;
            return Some(Message::new(id, self.thread, created_at, self.dialect));
        }
        if !self.sent.is_produced() {
            self.drop_open();
            let rest = self.sent.remove_rest();
            self.apply(rest);
        }
        if let Some(open) = self.open.take() {
            return Some(open);
        }
        let created_at = timestamp(self.clock.now());
        Some(Message::new(self.id()?, self.thread, created_at, self.dialect))
    }

    /// Tells readers of changes, with their rows.
    fn apply(&mut self, changes: Vec<Change>) {
        for change in changes {
            let (thread_id, run_id) = (self.thread, self.run);
            if let Change::Added(item) | Change::Replaced(item) = &change
                && let Some(image) = attachment_of(&item.wire.body)
            {
                self.rows.contained.push(ContainedRow { attachment: image.0, thread_id });
            }
            match &change {
                Change::Added(item) => {
                    self.insert(item.id, item.key().map(str::to_owned), json(&item.wire));
                }
                Change::Replaced(item) => {
                    let content = Some(json(&item.wire));
                    self.rows.replaced.push(ReplacedItemRow { thread_id, id: item.id, content, run_id });
                }
                Change::Removed(item) if !item.is_open() => {
                    self.rows.removed.push(RemovedItemRow { thread_id, id: item.id, run_id });
                }
                // An open item has no row.
                Change::Opened(_) | Change::Updated(..) | Change::Removed(_) => {}
            }
            self.events.extend(events_of(change));
        }
    }
}

#[cfg(test)]
mod tests;
