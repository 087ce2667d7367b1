//! The assistant's message while it is being written: its text, the text that readers have, and the events that close
//! the gap. Pure.

use kernel::{ItemKey, ThreadId};
use wire::Timestamp;
use wire::chat::{
    Annotation, ChatEvent, ContentPart, Dialect, IncompleteReason, ItemBody, ItemUpdate, MessageStatus,
    OutputText, PiecePart, Source, ThreadItem,
};

/// The part of the text that readers have.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ReceivedText {
    /// The item has not been sent.
    Nothing,
    /// This many bytes of the text.
    Prefix(usize),
    /// This text, from an earlier life or an attempt that is retried; the new text has not caught up yet.
    Earlier(String),
    /// A text that differs from the new one, and that the dialect cannot retract before the end.
    Other,
}

/// A message being written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DraftMessage {
    id: ItemKey,
    thread: ThreadId,
    created_at: Timestamp,
    dialect: Dialect,
    text: String,
    /// Length of the text in Unicode characters.
    length: usize,
    told: ReceivedText,
    /// Annotations, each with the number of text bytes before it.
    annotations: Vec<(usize, Annotation)>,
    /// Annotations that readers have. In the interface dialect they arrive with the complete message.
    told_annotations: Vec<Annotation>,
}

impl DraftMessage {
    pub(super) fn new(id: ItemKey, thread: ThreadId, created_at: Timestamp, dialect: Dialect) -> Self {
        let (text, told) = (String::new(), ReceivedText::Nothing);
        let (annotations, told_annotations) = (Vec::new(), Vec::new());
        Self { id, thread, created_at, dialect, text, length: 0, told, annotations, told_annotations }
    }

    /// A message from an earlier life, of which readers have `told`.
    pub(super) fn begun(
        id: ItemKey,
        thread: ThreadId,
        created_at: Timestamp,
        dialect: Dialect,
        told: OutputText,
    ) -> Self {
        let new = Self::new(id, thread, created_at, dialect);
        Self { told: ReceivedText::Earlier(told.text), told_annotations: told.annotations, ..new }
    }

    /// Reopens a complete message, with the positions of its annotations. Readers receive it once it is complete again.
    pub(super) fn reopened(
        id: ItemKey,
        thread: ThreadId,
        dialect: Dialect,
        item: ThreadItem,
        places: &[usize],
    ) -> Self {
        let mut message = Self::new(id, thread, item.created_at, dialect);
        let ItemBody::AssistantMessage { content, .. } = item.body else { return message };
        let mut places = places.iter().copied();
        for ContentPart::OutputText(OutputText { text, annotations }) in content {
            message.append(&text);
            let end = message.text.len();
            let placed = annotations.into_iter().map(|annotation| (places.next().unwrap_or(end), annotation));
            message.annotations.extend(placed);
        }
        message
    }

    /// Number of text bytes before each annotation.
    pub(super) fn places(&self) -> Vec<usize> {
        self.annotations.iter().map(|(place, _)| *place).collect()
    }

    pub(super) fn id(&self) -> ItemKey {
        self.id
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn append(&mut self, piece: &str) {
        self.text.push_str(piece);
        self.length += piece.chars().count();
    }

    /// Adds an annotation `from_end` characters before the end; equal ones are added once.
    pub(super) fn annotate(&mut self, source: Source, from_end: usize) {
        let index = self.length.saturating_sub(from_end);
        let annotation = Annotation { source, index: u64::try_from(index).ok() };
        if !self.annotations.iter().any(|(_, known)| *known == annotation) {
            self.annotations.push((self.text.len(), annotation));
        }
    }

    /// Removes the last `bytes` bytes with their annotations. Readers keep received annotations until the text differs.
    pub(super) fn rewind(&mut self, bytes: usize) {
        let left = self.text.floor_char_boundary(self.text.len().saturating_sub(bytes));
        if let ReceivedText::Prefix(told) = self.told
            && told > left
        {
            self.told = ReceivedText::Earlier(self.text.get(..told).unwrap_or_default().to_owned());
        }
        self.length -= self.text.get(left..).unwrap_or_default().chars().count();
        self.text.truncate(left);
        self.annotations.retain(|(bytes, _)| *bytes <= left);
    }

    /// Number of bytes that readers do not have.
    pub(super) fn untold(&self) -> usize {
        match &self.told {
            ReceivedText::Nothing => self.text.len(),
            ReceivedText::Prefix(told) => self.text.len().saturating_sub(*told),
            ReceivedText::Earlier(told) => self.text.len().saturating_sub(told.len()),
            ReceivedText::Other => 0,
        }
    }

    /// Whether readers know the message.
    pub(super) fn is_begun(&self) -> bool {
        self.told != ReceivedText::Nothing
    }

    /// The events that bring readers up to date.
    pub(super) fn tell(&mut self) -> Vec<ChatEvent> {
        let mut events = Vec::new();
        if let ReceivedText::Earlier(told) = &self.told {
            if told.len() > self.text.len() && told.starts_with(&self.text) {
                return events;
            }
            if self.text.starts_with(told.as_str()) {
                self.told = ReceivedText::Prefix(told.len());
            } else if self.dialect == Dialect::Chatkit {
                events.push(self.replaced());
            } else {
                self.told = ReceivedText::Other;
            }
        }
        if self.told == ReceivedText::Nothing && !self.text.is_empty() {
            self.begin(&mut events);
        }
        if let ReceivedText::Prefix(told) = self.told
            && let Some(piece) = self.text.get(told..)
            && !piece.is_empty()
        {
            let update = match self.dialect {
                Dialect::Interface => ItemUpdate::PieceAdded { part: PiecePart { text: piece.to_owned() } },
                Dialect::Chatkit => ItemUpdate::TextDelta { content_index: 0, delta: piece.to_owned() },
            };
            events.push(self.updated(update));
            self.told = ReceivedText::Prefix(self.text.len());
        }
        if self.dialect == Dialect::Chatkit && matches!(self.told, ReceivedText::Prefix(_)) {
            self.tell_annotations(&mut events);
        }
        events
    }

    fn tell_annotations(&mut self, events: &mut Vec<ChatEvent>) {
        if self.annotations.is_empty() {
            return;
        }
        let now: Vec<Annotation> = self.all_annotations();
        if self.told_annotations.starts_with(&now) {
            return;
        }
        let Some(new) = now.strip_prefix(self.told_annotations.as_slice()) else {
            events.push(self.replaced());
            return;
        };
        for (annotation_index, annotation) in (0_u32..).zip(&now).skip(now.len() - new.len()) {
            let (content_index, annotation) = (0, annotation.clone());
            let update = ItemUpdate::AnnotationAdded { content_index, annotation_index, annotation };
            events.push(self.updated(update));
        }
        self.told_annotations = now;
    }

    fn all_annotations(&self) -> Vec<Annotation> {
        self.annotations.iter().map(|(_, annotation)| annotation.clone()).collect()
    }

    /// The whole message, replacing the readers' version.
    fn replaced(&mut self) -> ChatEvent {
        self.told = ReceivedText::Prefix(self.text.len());
        self.told_annotations = self.all_annotations();
        ChatEvent::ItemReplaced { item: self.item(None) }
    }

    /// The events that complete the message, or end it as it is.
    pub(super) fn finish(&mut self, incomplete: Option<IncompleteReason>) -> Vec<ChatEvent> {
        let mut events = self.tell();
        if self.dialect == Dialect::Chatkit {
            if self.told == ReceivedText::Nothing {
                self.begin(&mut events);
            }
            events.push(self.updated(ItemUpdate::PartDone { content_index: 0, content: self.content() }));
        }
        events.push(ChatEvent::ItemDone { item: self.item(incomplete) });
        events
    }

    /// Keeps the text that readers have when the turn was stopped before the new text caught up.
    pub(super) fn keep_what_was_told(&mut self) {
        if let ReceivedText::Earlier(told) = &self.told
            && told.len() > self.text.len()
        {
            self.text.clone_from(told);
            self.length = self.text.chars().count();
        }
        if self.told_annotations.starts_with(&self.all_annotations()) {
            let told = std::mem::take(&mut self.told_annotations);
            self.annotations = told.into_iter().map(|annotation| (self.text.len(), annotation)).collect();
        }
    }

    fn content(&self) -> ContentPart {
        let (text, annotations) = (self.text.clone(), self.all_annotations());
        ContentPart::OutputText(OutputText { text, annotations })
    }

    /// The message as an item.
    pub(super) fn item(&self, incomplete: Option<IncompleteReason>) -> ThreadItem {
        self.item_with(vec![self.content()], incomplete)
    }

    fn item_with(&self, content: Vec<ContentPart>, reason: Option<IncompleteReason>) -> ThreadItem {
        let body =
            ItemBody::AssistantMessage { content, status: reason.map(|_| MessageStatus::Incomplete), reason };
        let (id, thread_id) = (self.id.wire(body.prefix()), self.thread.to_string());
        ThreadItem { id, thread_id, created_at: self.created_at.clone(), body }
    }

    fn begin(&mut self, events: &mut Vec<ChatEvent>) {
        events.push(ChatEvent::ItemAdded { item: self.item_with(Vec::new(), None) });
        if self.dialect == Dialect::Chatkit {
            let content = ContentPart::text("");
            events.push(self.updated(ItemUpdate::PartAdded { content_index: 0, content }));
        }
        self.told = ReceivedText::Prefix(0);
    }

    fn updated(&self, update: ItemUpdate) -> ChatEvent {
        ChatEvent::ItemUpdated { item_id: self.id.wire("msg"), update }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn message(dialect: Dialect, sent: Option<&str>) -> DraftMessage {
        let (id, thread) = (ItemKey([1; 24]), ThreadId(Uuid::nil()));
        match sent {
            Some(sent) => {
                let sent = OutputText { text: sent.into(), annotations: Vec::new() };
                DraftMessage::begun(id, thread, "t".into(), dialect, sent)
            }
            None => DraftMessage::new(id, thread, "t".into(), dialect),
        }
    }

    /// The text that a protocol-conforming client shows.
    fn shown(events: &[ChatEvent], before: &str) -> String {
        let mut text = before.to_owned();
        for event in events {
            match event {
                ChatEvent::ItemUpdated { update: ItemUpdate::PartDone { .. }, .. } => {}
                ChatEvent::ItemUpdated { update, .. } => text.push_str(update.appended_text().unwrap_or("")),
                ChatEvent::ItemReplaced { item } | ChatEvent::ItemDone { item } => {
                    text = item.body.text().unwrap()
                }
                _ => {}
            }
        }
        text
    }

    #[test]
    fn pieces_add_up_to_the_text_in_both_dialects() {
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let mut message = message(dialect, None);
            let mut events = Vec::new();
            for piece in ["He", "", "llo", " é"] {
                message.append(piece);
                events.extend(message.tell());
            }
            assert_eq!(shown(&events, ""), "Hello é");
            let started_items = events.iter().filter(|e| matches!(e, ChatEvent::ItemAdded { .. })).count();
            assert_eq!(started_items, 1);
            events.extend(message.finish(None));
            assert_eq!(shown(&events, ""), "Hello é");
            assert!(matches!(events.last(), Some(ChatEvent::ItemDone { .. })));
        }
    }

    #[test]
    fn a_message_without_a_start_is_complete_with_its_done_event() {
        let mut message = message(Dialect::Interface, None);
        assert!(message.tell().is_empty());
        assert_eq!(message.finish(None).len(), 1);
    }

    #[test]
    fn an_equal_prefix_is_not_sent_twice() {
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let mut message = message(dialect, Some("Hello w"));
            message.append("Hello");
            assert!(message.tell().is_empty());
            message.append(" world");
            let events = message.tell();
            assert_eq!(events.len(), 1, "{events:?}");
            assert_eq!(shown(&events, "Hello w"), "Hello world");
        }
    }

    #[test]
    fn a_differing_text_is_replaced_at_once_or_settled_at_the_end() {
        let mut chatkit = message(Dialect::Chatkit, Some("Hello w"));
        chatkit.append("Hi there");
        let mut events = chatkit.tell();
        assert_eq!(shown(&events, "Hello w"), "Hi there");
        chatkit.append("!");
        events.extend(chatkit.tell());
        assert_eq!(shown(&events, "Hello w"), "Hi there!");

        let mut interface = message(Dialect::Interface, Some("Hello w"));
        interface.append("Hi there");
        assert!(interface.tell().is_empty(), "pieces would be appended to a different text");
        interface.append("!");
        assert_eq!(shown(&interface.finish(None), "Hello w"), "Hi there!");
    }

    #[test]
    fn rewound_text_that_is_appended_again_is_not_sent_twice() {
        for dialect in [Dialect::Interface, Dialect::Chatkit] {
            let mut message = message(dialect, None);
            message.append("Hi, Hello w");
            let before = shown(&message.tell(), "");
            message.rewind("Hello w".len());
            assert!(message.tell().is_empty());
            message.append("Hello");
            assert!(message.tell().is_empty());
            message.append(" world");
            assert_eq!(shown(&message.tell(), &before), "Hi, Hello world");
            message.rewind(" world".len());
            message.append(", moon");
            assert_eq!(shown(&message.finish(None), "Hi, Hello world"), "Hi, Hello, moon");
        }
    }

    #[test]
    fn a_stop_keeps_the_text_that_readers_received() {
        let mut message = message(Dialect::Interface, Some("Hello w"));
        message.append("Hel");
        message.keep_what_was_told();
        assert_eq!(shown(&message.finish(None), "Hello w"), "Hello w");
    }
}
