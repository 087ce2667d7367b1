//! Turns run activity into chat events.

use engine::ports::{
    ImmediateEvent, SentAnnotation, SentItem, StepOutcome, StepRecord, ThreadChange, Undone,
};
use kernel::ThreadId;
use store::batch::{Batch, ThreadChangeRow};
use store::{FoundItem, StoredThread};
use wire::chat::{ChatEvent, ItemBody, Thread, ThreadItem};

use super::{COALESCE_BYTES, ChatEvents};
use crate::kinds::turn::images;
use crate::kinds::turn::message::DraftMessage;
use crate::run::{EventWriter, Frames, Urgency};
use crate::text::timestamp;

impl EventWriter for ChatEvents {
    fn records(&mut self, row: &StepRecord) {
        self.has_progressed |= row.outcome != StepOutcome::Started;
    }

    fn text(&mut self, _node: &str, piece: &str) -> Urgency {
        // The previous turn completed its last message when it ended, so new text starts another message.
        if self.continued.is_some() && self.again && self.is_last_known_text() {
            self.complete();
        }
        if self.message.is_none() {
            self.message = self.next_message();
        }
        let Some(message) = &mut self.message else { return Urgency::Whenever };
        message.append(piece);
        match (self.again, message.is_begun(), message.untold()) {
            (true, ..) => Urgency::Whenever,
            // The first piece is sent as soon as the workflow yields.
            (_, false, _) => Urgency::Next,
            (_, true, COALESCE_BYTES..) => Urgency::Now,
            (_, true, _) => Urgency::Soon,
        }
    }

    fn annotate(&mut self, annotations: Vec<SentAnnotation>) -> Urgency {
        for SentAnnotation { source, from_end } in annotations {
            if let Some(message) = &mut self.message {
                message.annotate(source, from_end);
            }
        }
        Urgency::Soon
    }

    fn undo(&mut self, _node: &str, parts: &[Undone]) {
        for part in parts {
            match *part {
                Undone::Text(bytes) => {
                    if let Some(message) = &mut self.message {
                        message.rewind(bytes);
                    }
                }
                Undone::Message(bytes) => {
                    self.take_back();
                    if let Some((id, item)) = self.sent.undo() {
                        let places = self.places.remove(&id).unwrap_or_default();
                        let mut message =
                            DraftMessage::reopened(id, self.thread, self.dialect, item, &places);
                        message.rewind(bytes);
                        (self.message, self.again) = (Some(message), true);
                    }
                }
                Undone::Item => {
                    self.take_back();
                    self.sent.undo();
                }
            }
        }
        if self.again && self.message.as_ref().is_some_and(|message| message.text().is_empty()) {
            (self.message, self.again) = (None, false);
        }
    }

    fn new_message(&mut self) -> Urgency {
        if self.message.as_ref().is_none_or(|message| message.text().is_empty()) {
            return Urgency::Whenever;
        }
        self.complete();
        Urgency::Soon
    }

    fn looks_up(&self, key: &str) -> Option<ThreadId> {
        self.sent.produced(key).is_none().then_some(self.thread)
    }

    fn item(&mut self, item: SentItem, earlier: Option<FoundItem>) -> Urgency {
        self.complete();
        let SentItem { key, body, more } = item;
        self.sent.align(matches!(body, Some(ItemBody::HiddenContextItem { .. })));
        let produced = key.as_deref().and_then(|key| self.sent.produced(key));
        // An item that this turn created in an earlier life is already in the list.
        let earlier = earlier.filter(|earlier| self.sent.may_change(earlier.id));
        let expected = match (&produced, &body) {
            (None, Some(state)) => self.sent.expected(key.as_deref(), state, earlier.is_some()).is_some(),
            _ => false,
        };
        let earlier = earlier.filter(|_| !expected);
        let known = produced.or_else(|| earlier.map(|earlier| self.sent.find(earlier)));
        let is_next = match (known, &body) {
            (Some(item), Some(state)) => self.sent.is_next(item, state),
            _ => expected,
        };
        if body.is_some() && !is_next {
            self.drop_open();
        }
        let changes = match (known, body) {
            (Some(item), state) => self.sent.change(item, state, more),
            (None, Some(state)) => {
                let Some(id) = self.id() else { return Urgency::Whenever };
                let (name, thread_id) = (id.wire(state.prefix()), self.thread.to_string());
                let created_at = timestamp(self.clock.now());
                self.sent.add(id, ThreadItem { body: state, id: name, thread_id, created_at }, key, more)
            }
            (None, None) => {
                self.sent.nothing();
                Vec::new()
            }
        };
        self.apply(changes);
        Urgency::Soon
    }

    fn immediate(&mut self, event: ImmediateEvent) -> Urgency {
        self.event(match event {
            ImmediateEvent::Progress(text) => ChatEvent::ProgressUpdate { text, icon: None },
            ImmediateEvent::Notice { level, message, title } => ChatEvent::Notice { level, message, title },
            ImmediateEvent::Effect { name, data } => ChatEvent::ClientEffect { name, data },
        });
        Urgency::Next
    }

    fn thread(&self) -> Option<ThreadId> {
        Some(self.thread)
    }

    fn change_thread(&mut self, stored: StoredThread, change: ThreadChange) -> bool {
        let before = Thread::from(stored);
        let mut thread = before.clone();
        let ThreadChange { title, status, image_domains } = change;
        thread.title = title.clone().or(thread.title);
        thread.status = status.clone().unwrap_or(thread.status);
        thread.allowed_image_domains = image_domains.clone().unwrap_or(thread.allowed_image_domains);
        if thread == before {
            return false;
        }
        let (id, run_id) = (self.thread, self.run);
        self.rows.thread_changes.push(ThreadChangeRow { id, run_id, title, status, image_domains });
        self.event(ChatEvent::ThreadUpdated { thread });
        true
    }

    fn write(&mut self, frames: &mut Frames, batch: &mut Batch) {
        self.tell();
        for mut event in self.events.drain(..) {
            if let Some((links, base)) = &self.links {
                images::address(&mut event, |id| links.url(id, base, self.clock.now()));
            }
            frames.push(&event);
        }
        batch.thread_changes.append(&mut self.rows.thread_changes);
        batch.items.append(&mut self.rows.items);
        batch.replaced_items.append(&mut self.rows.replaced);
        batch.removed_items.append(&mut self.rows.removed);
        batch.question_items.append(&mut self.rows.question_items);
        batch.turns_sent.append(&mut self.rows.sent);
        batch.closed_questions.append(&mut self.rows.closed);
        batch.contained.append(&mut self.rows.contained);
    }
}
