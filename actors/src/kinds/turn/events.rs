//! What a chat turn tells its readers: the assistant's messages, progress, notices. Pure but for ids and time.

use std::sync::Arc;

use kernel::{Clock, Ids, ItemKey, ThreadId};
use store::batch::ItemRow;
use wire::chat::{ChatEvent, Dialect, IncompleteReason, NoticeLevel, ThreadItem};

use super::message::Message;
use crate::run::{EventWriter, Frames, Urgency};
use crate::text::{json, timestamp};

/// Bytes of text that are handed over without waiting for more.
const COALESCE_BYTES: usize = 512;

/// What a chat turn tells its readers.
pub(crate) struct ChatEvents {
    thread: ThreadId,
    /// The user's message that the turn answers.
    question: Option<ItemKey>,
    dialect: Dialect,
    ids: Ids,
    clock: Arc<dyn Clock>,
    message: Option<Message>,
    /// Messages that are complete and stored, those of earlier lives too.
    completed: usize,
    /// How many of an earlier life's complete messages the resumed run has still to say again.
    again: usize,
    /// Bytes of the one of them that it is saying.
    again_bytes: usize,
    /// Not told yet; before what the message has to tell.
    events: Vec<ChatEvent>,
    items: Vec<ItemRow>,
}

impl ChatEvents {
    /// `completed` messages are stored already; `message` was begun.
    pub(super) fn new(
        (thread, question): (ThreadId, Option<ItemKey>),
        dialect: Dialect,
        ids: Ids,
        clock: Arc<dyn Clock>,
        completed: usize,
        message: Option<Message>,
    ) -> Self {
        Self {
            thread,
            question,
            dialect,
            ids,
            clock,
            message,
            completed,
            again: completed,
            again_bytes: 0,
            events: Vec::new(),
            items: Vec::new(),
        }
    }

    /// Whether the turn has said anything.
    pub(super) fn has_spoken(&self) -> bool {
        self.completed > 0 || self.message.as_ref().is_some_and(|message| !message.text().is_empty())
    }

    /// Whether the current message has words in it.
    pub(super) fn has_words(&self) -> bool {
        self.message.as_ref().is_some_and(|message| !message.text().trim().is_empty())
    }

    /// A stopped turn: what readers were told is kept as the message.
    pub(super) fn keep_what_was_told(&mut self) {
        if let Some(message) = &mut self.message {
            message.keep_what_was_told();
        }
    }

    /// Completes the current message; an empty one that readers know of is taken back.
    pub(super) fn complete(&mut self) {
        self.end_message(None);
    }

    /// Ends the current message with its partial text and the reason.
    pub(super) fn leave_incomplete(&mut self, reason: IncompleteReason) {
        self.end_message(Some(reason));
    }

    fn end_message(&mut self, incomplete: Option<IncompleteReason>) {
        let Some(mut message) = self.message.take() else { return };
        if !message.text().is_empty() {
            self.events.extend(message.finish(incomplete));
            self.item(message.id(), json(&message.item(incomplete)));
            self.completed += 1;
        } else {
            self.remove(&message);
        }
    }

    /// Takes the current message back, whatever it says.
    pub(super) fn take_back(&mut self) {
        if let Some(message) = self.message.take() {
            self.remove(&message);
        }
    }

    /// Readers who know of the message are told that it is none.
    fn remove(&mut self, message: &Message) {
        if message.is_begun() {
            self.events.push(ChatEvent::ItemRemoved { item_id: message.id().wire("msg") });
        }
    }

    /// An event behind everything that was said.
    pub(super) fn event(&mut self, event: ChatEvent) {
        if let Some(message) = &mut self.message {
            self.events.extend(message.tell());
        }
        self.events.push(event);
    }

    /// A text at once.
    pub(super) fn whole_text(&mut self, text: &str) {
        self.text("output", text);
    }

    /// An item for the model alone; no client sees it.
    pub(super) fn note(&mut self, content: &str) {
        let Ok(id) = self.ids.item() else { return };
        let item = ThreadItem::SdkHiddenContext {
            id: id.wire("shcx"),
            thread_id: self.thread.to_string(),
            created_at: timestamp(self.clock.now()),
            content: content.to_owned(),
        };
        self.item(id, json(&item));
    }

    fn item(&mut self, id: ItemKey, content: String) {
        self.items.push(ItemRow { thread_id: self.thread, id, content, answers: self.question });
    }
}

impl EventWriter for ChatEvents {
    fn text(&mut self, _node: &str, piece: &str) -> Urgency {
        if self.again > 0 {
            self.again_bytes += piece.len();
            return Urgency::Whenever;
        }
        let message = match &mut self.message {
            Some(message) => message,
            none => {
                let Ok(id) = self.ids.item() else {
                    tracing::error!("no random bytes for a message's id");
                    return Urgency::Whenever;
                };
                let created_at = timestamp(self.clock.now());
                none.insert(Message::new(id, self.thread, created_at, self.dialect))
            }
        };
        message.append(piece);
        match (message.is_begun(), message.untold()) {
            // The first piece goes out at once: as soon as the workflow gives way.
            (false, _) => Urgency::Next,
            (true, COALESCE_BYTES..) => Urgency::Now,
            (true, _) => Urgency::Soon,
        }
    }

    fn rewind(&mut self, _node: &str, bytes: usize) {
        if self.again > 0 {
            self.again_bytes = self.again_bytes.saturating_sub(bytes);
        } else if let Some(message) = &mut self.message {
            message.rewind(bytes);
        }
    }

    fn new_message(&mut self) -> Urgency {
        if self.again > 0 {
            if self.again_bytes > 0 {
                (self.again, self.again_bytes) = (self.again - 1, 0);
            }
            return Urgency::Whenever;
        }
        if self.message.as_ref().is_none_or(|message| message.text().is_empty()) {
            return Urgency::Whenever;
        }
        self.complete();
        Urgency::Soon
    }

    fn progress(&mut self, text: &str) -> Urgency {
        self.event(ChatEvent::ProgressUpdate { text: text.to_owned(), icon: None });
        Urgency::Next
    }

    fn notice(&mut self, level: NoticeLevel, message: &str, title: Option<&str>) -> Urgency {
        let (message, title) = (message.to_owned(), title.map(str::to_owned));
        self.event(ChatEvent::Notice { level, message, title });
        Urgency::Next
    }

    fn write(&mut self, frames: &mut Frames, items: &mut Vec<ItemRow>) {
        for event in self.events.drain(..) {
            frames.push(&event);
        }
        for event in self.message.as_mut().map(Message::tell).unwrap_or_default() {
            frames.push(&event);
        }
        items.append(&mut self.items);
    }
}

#[cfg(test)]
mod tests {
    use kernel::{SystemClock, SystemRandom};
    use uuid::Uuid;
    use wire::sse;

    use super::*;
    use crate::kinds::turn::resume::fold;

    fn writer(dialect: Dialect, completed: usize, message: Option<Message>) -> ChatEvents {
        let clock = Arc::new(SystemClock::new());
        let ids = Ids::new(clock.clone(), Arc::new(SystemRandom::new()));
        ChatEvents::new((ThreadId(Uuid::nil()), None), dialect, ids, clock, completed, message)
    }

    /// The events that are written now.
    fn told(writer: &mut ChatEvents) -> Vec<ChatEvent> {
        let mut frames = Frames::new("s".to_owned(), 1);
        writer.write(&mut frames, &mut Vec::new());
        let (text, ..) = frames.take();
        sse::data(&text).map(|event| serde_json::from_str(event).unwrap()).collect()
    }

    fn done(events: &[ChatEvent]) -> Vec<String> {
        let texts = events.iter().filter_map(|event| match event {
            ChatEvent::ItemDone { item: item @ ThreadItem::AssistantMessage { .. } } => {
                Some(item.as_message().1)
            }
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn a_new_message_completes_the_one_before_unless_that_is_empty() {
        let mut writer = writer(Dialect::Interface, 0, None);
        writer.new_message();
        writer.text("a", "one");
        writer.new_message();
        writer.new_message();
        writer.text("b", "two");
        writer.complete();
        assert_eq!(done(&told(&mut writer)), ["one", "two"]);
    }

    #[test]
    fn a_resumed_turn_does_not_complete_a_message_twice() {
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let script = |writer: &mut ChatEvents| {
                writer.text("a", "one");
                writer.new_message();
                // An attempt that was made again.
                writer.text("b", "tw");
                writer.rewind("b", 2);
                writer.new_message();
                writer.text("b", "two");
            };
            let mut first = writer(dialect, 0, None);
            script(&mut first);
            let mut frames = Frames::new("s".to_owned(), 1);
            first.write(&mut frames, &mut Vec::new());
            let (text, first_seq, last_seq) = frames.take();
            let stored = store::StoredFrames { first_seq, last_seq, frames: text };
            let resumed = fold(&[stored], ThreadId(Uuid::nil()), dialect);
            assert_eq!(resumed.completed, 1);
            let mut second = writer(dialect, resumed.completed, resumed.message);
            script(&mut second);
            assert!(told(&mut second).is_empty(), "all of it was told");
            second.complete();
            assert_eq!(done(&told(&mut second)), ["two"]);
        }
    }

    #[test]
    fn what_is_taken_back_and_never_said_again_is_removed() {
        let mut writer = writer(Dialect::Interface, 0, None);
        writer.text("a", "half");
        assert_eq!(told(&mut writer).len(), 2);
        writer.rewind("a", 4);
        assert!(!writer.has_spoken());
        writer.complete();
        assert!(matches!(told(&mut writer)[..], [ChatEvent::ItemRemoved { .. }]));
    }

    #[test]
    fn a_notice_stands_behind_what_was_said_before_it() {
        let mut writer = writer(Dialect::Interface, 0, None);
        writer.text("a", "said");
        writer.notice(NoticeLevel::Info, "careful", None);
        writer.text("a", " more");
        let kinds: Vec<bool> =
            told(&mut writer).iter().map(|event| matches!(event, ChatEvent::Notice { .. })).collect();
        assert_eq!(kinds, [false, false, true, false]);
    }
}
