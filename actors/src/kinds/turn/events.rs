//! A chat turn's events for its readers: assistant messages, items, progress, notices. Pure except for ids and time.

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
use super::message::DraftMessage;
use super::sent::{ItemChange, OutputItem, OutputList};
use crate::run::{EventWriter, ImageLinks};
use crate::text::{json, timestamp};

/// Bytes of text that are handed over without waiting for more.
const COALESCE_BYTES: usize = 512;

/// A chat turn's event writer.
pub(crate) struct ChatEvents {
    thread: ThreadId,
    run: Uuid,
    /// The user's message that the turn answers.
    question: Option<ItemKey>,
    /// Whether the turn fails if it shows nothing.
    needs_reply: bool,
    /// The turn that this one continues.
    continued: Option<Continued>,
    /// Whether a step has ended in this run.
    has_progressed: bool,
    /// Whether this run has added an item.
    has_added: bool,
    /// The thread as the turn read it, if it may end with a question.
    messages: Option<Vec<Value>>,
    dialect: Dialect,
    ids: Ids,
    clock: Arc<dyn Clock>,
    /// Creates image URLs, with the base URL as seen by the client.
    links: Option<(ImageLinks, String)>,
    /// The output list, including output from earlier lives.
    sent: OutputList,
    /// The message being written.
    message: Option<DraftMessage>,
    /// Whether readers already know the complete message; it is compared once complete again.
    again: bool,
    /// For complete messages with annotations: the positions where these were added.
    places: HashMap<ItemKey, Vec<usize>>,
    /// A message that an earlier life left unfinished, until the run reaches it.
    open: Option<DraftMessage>,
    /// Pending events, which precede the message's pending events.
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

/// Identifies a turn.
pub(super) struct TurnIdentity {
    pub(super) thread: ThreadId,
    pub(super) run: Uuid,
    /// The user's message that the turn answers.
    pub(super) question: Option<ItemKey>,
}

impl ChatEvents {
    /// `sent` and `open`: output of an earlier life, and the message that it was writing.
    pub(super) fn new(
        turn: TurnIdentity,
        dialect: Dialect,
        ids: Ids,
        clock: Arc<dyn Clock>,
        sent: OutputList,
        open: Option<DraftMessage>,
    ) -> Self {
        let TurnIdentity { thread, run, question } = turn;
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

    /// Adds the rows of items that an earlier life created or changed. Reports other turns' changes to readers.
    pub(super) fn remember(&mut self, items: Vec<FoundItem>) {
        for change in self.sent.remember(items) {
            self.events.extend(events_of(change));
        }
    }

    /// Enables image URLs. `base`: the base URL as seen by the client, if none is configured.
    #[must_use]
    pub(super) fn with_links(self, links: ImageLinks, base: Option<String>) -> Self {
        Self { links: Some((links, base.unwrap_or_default())), ..self }
    }

    /// Sets whether the turn may end without visible output.
    #[must_use]
    pub(super) fn without_reply(self, may: bool) -> Self {
        Self { needs_reply: !may, ..self }
    }

    /// Whether the turn fails without visible output.
    pub(super) fn needs_reply(&self) -> bool {
        self.needs_reply
    }

    /// Whether the turn has produced visible output.
    pub(super) fn has_spoken(&self) -> bool {
        let text = |message: &Option<DraftMessage>| {
            message.as_ref().is_some_and(|message| !message.text().is_empty())
        };
        self.sent.is_visible() || text(&self.message)
    }

    /// Whether the current message has visible text.
    pub(super) fn has_words(&self) -> bool {
        self.message.as_ref().is_some_and(|message| !message.text().trim().is_empty())
    }

    /// Keeps the text that readers received in a turn that did not succeed.
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

    /// Completes the current message; retracts an empty one that readers know.
    pub(super) fn complete(&mut self) {
        self.end_message(None);
    }

    /// Ends a successful run: removes output that was not produced again.
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

    /// Ends the run: its changes can no longer be reverted.
    pub(super) fn end_changes(&mut self) {
        let (thread_id, run_id) = (self.thread, self.run);
        for OutputItem { id, .. } in self.sent.changed_items() {
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

    /// Whether the current message equals the last one in the list.
    fn is_last_known_text(&self) -> bool {
        self.message.as_ref().is_some_and(|message| self.sent.is_last_message(message.text()))
    }

    /// Retracts the current message, whatever its text.
    pub(super) fn take_back(&mut self) {
        if let Some(message) = self.message.take()
            && !std::mem::take(&mut self.again)
        {
            self.remove(&message);
        }
    }

    /// Removes a message that readers know.
    fn remove(&mut self, message: &DraftMessage) {
        if message.is_begun() {
            self.events.push(ChatEvent::ItemRemoved { item_id: message.id().wire("msg") });
        }
    }

    /// Drops the unfinished message from an earlier life: the run has passed its position without writing it.
    fn drop_open(&mut self) {
        if let Some(open) = self.open.take() {
            self.remove(&open);
        }
    }

    /// Adds an event after all text so far.
    pub(super) fn event(&mut self, event: ChatEvent) {
        self.tell();
        self.events.push(event);
    }

    fn tell(&mut self) {
        if let Some(message) = self.message.as_mut().filter(|_| !self.again) {
            self.events.extend(message.tell());
        }
    }

    /// Writes a whole text at once.
    pub(super) fn whole_text(&mut self, text: &str) {
        self.text("output", text);
    }

    /// Adds an item for the model alone; clients never see it.
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
            tracing::error!("failed to generate an item id");
        }
        id.ok()
    }

    fn insert(&mut self, id: ItemKey, key: Option<String>, content: String) {
        self.has_added = true;
        let (thread_id, answers, run_id) = (self.thread, self.question, Some(self.run));
        self.rows.items.push(ItemRow { thread_id, id, content, answers, run_id, key });
    }

    /// Returns the message that the next piece of text belongs to.
    fn next_message(&mut self) -> Option<DraftMessage> {
        self.sent.align(false);
        if let Some((id, created_at)) = self.sent.expected_message() {
            self.again = true;
            return Some(DraftMessage::new(id, self.thread, created_at, self.dialect));
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
        Some(DraftMessage::new(self.id()?, self.thread, created_at, self.dialect))
    }

    /// Applies changes: events for readers, and rows.
    fn apply(&mut self, changes: Vec<ItemChange>) {
        for change in changes {
            let (thread_id, run_id) = (self.thread, self.run);
            if let ItemChange::Added(item) | ItemChange::Replaced(item) = &change
                && let Some(image) = attachment_of(&item.wire.body)
            {
                self.rows.contained.push(ContainedRow { attachment: image.0, thread_id });
            }
            match &change {
                ItemChange::Added(item) => {
                    self.insert(item.id, item.key().map(str::to_owned), json(&item.wire));
                }
                ItemChange::Replaced(item) => {
                    let content = Some(json(&item.wire));
                    self.rows.replaced.push(ReplacedItemRow { thread_id, id: item.id, content, run_id });
                }
                ItemChange::Removed(item) if !item.is_open() => {
                    self.rows.removed.push(RemovedItemRow { thread_id, id: item.id, run_id });
                }
                // An open item has no row.
                ItemChange::Opened(_) | ItemChange::Updated(..) | ItemChange::Removed(_) => {}
            }
            self.events.extend(events_of(change));
        }
    }
}

#[cfg(test)]
mod tests;
