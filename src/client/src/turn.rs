//! A complete chat turn, assembled from its events.

use wire::chat::{ChatEvent, ThreadItem};

use crate::StreamEvent;

/// A turn from its first event to its last.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The thread id; empty if no event named it.
    pub thread_id: String,
    /// The stream id.
    pub stream_id: String,
    /// The workflow's reply; several messages are joined by an empty line.
    pub text: String,
    /// All events in the turn.
    pub events: Vec<StreamEvent>,
    /// The error that ended the turn.
    pub error: Option<TurnError>,
    /// Number of times that the stream was resumed.
    pub resumes: u32,
    /// Number of events unknown to this client.
    pub skipped: u64,
}

/// The error event that ended a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnError {
    /// The message for the user.
    pub message: Option<String>,
    /// The dotted error code.
    pub code: Option<String>,
    /// Whether a retry may help.
    pub allow_retry: bool,
}

/// Collects events and keeps the text as a reader sees it.
pub(crate) struct Collector {
    turn: Turn,
    /// Each assistant message's item id and text, in the order they began.
    messages: Vec<(String, String)>,
}

impl Collector {
    pub(crate) fn new(stream_id: String) -> Self {
        let turn = Turn {
            thread_id: String::new(),
            stream_id,
            text: String::new(),
            events: Vec::new(),
            error: None,
            resumes: 0,
            skipped: 0,
        };
        Self { turn, messages: Vec::new() }
    }

    pub(crate) fn take(&mut self, event: StreamEvent) {
        match &event.event {
            ChatEvent::ThreadCreated { thread } | ChatEvent::ThreadUpdated { thread } => {
                self.turn.thread_id.clone_from(&thread.id);
            }
            ChatEvent::ItemAdded { item }
            | ChatEvent::ItemDone { item }
            | ChatEvent::ItemReplaced { item } => {
                self.settle(item);
            }
            ChatEvent::ItemUpdated { item_id, update } => {
                if let Some(piece) = update.appended_text() {
                    self.edit(item_id, |text| text.push_str(piece));
                }
            }
            ChatEvent::ItemRemoved { item_id } => self.messages.retain(|(id, _)| id != item_id),
            ChatEvent::Error { message, allow_retry, error_code, .. } => {
                let (message, code) = (message.clone(), error_code.clone());
                self.turn.error = Some(TurnError { message, code, allow_retry: *allow_retry });
            }
            ChatEvent::StreamOptions { .. }
            | ChatEvent::ProgressUpdate { .. }
            | ChatEvent::ClientEffect { .. }
            | ChatEvent::Notice { .. } => {}
        }
        self.turn.events.push(event);
    }

    /// Replaces the streamed text of an item by the complete item.
    fn settle(&mut self, item: &ThreadItem) {
        self.turn.thread_id.clone_from(&item.thread_id);
        if let Some(whole) = item.body.text() {
            self.edit(item.id(), |text| *text = whole);
        }
    }

    fn edit(&mut self, item_id: &str, edit: impl FnOnce(&mut String)) {
        match self.messages.iter_mut().find(|(id, _)| id == item_id) {
            Some((_, text)) => edit(text),
            None => {
                let mut text = String::new();
                edit(&mut text);
                self.messages.push((item_id.to_owned(), text));
            }
        }
    }

    pub(crate) fn finish(mut self, resumes: u32, skipped: u64) -> Turn {
        let texts: Vec<String> = self.messages.into_iter().map(|(_, text)| text).collect();
        self.turn.text = texts.join("\n\n");
        self.turn.resumes = resumes;
        self.turn.skipped = skipped;
        self.turn
    }
}

#[cfg(test)]
mod tests {
    use wire::ErrorCode;
    use wire::chat::{ContentPart, ItemBody, ItemUpdate, PiecePart};

    use super::*;

    fn piece(item_id: &str, text: &str) -> ChatEvent {
        let update = ItemUpdate::PieceAdded { part: PiecePart { text: text.into() } };
        ChatEvent::ItemUpdated { item_id: item_id.into(), update }
    }

    fn delta(item_id: &str, text: &str) -> ChatEvent {
        let update = ItemUpdate::TextDelta { content_index: 0, delta: text.into() };
        ChatEvent::ItemUpdated { item_id: item_id.into(), update }
    }

    fn message(id: &str, text: &str) -> ThreadItem {
        ThreadItem {
            id: id.into(),
            thread_id: "thr_1".into(),
            created_at: String::new(),
            body: ItemBody::message(text),
        }
    }

    fn collect(events: Vec<ChatEvent>) -> Turn {
        let mut collector = Collector::new("s".into());
        for (seq, event) in (1..).zip(events) {
            collector.take(StreamEvent { seq, id: format!("s.{seq}"), event });
        }
        collector.finish(2, 1)
    }

    #[test]
    fn pieces_are_appended_in_either_dialect() {
        assert_eq!(collect(vec![piece("msg_1", "a"), piece("msg_1", "b")]).text, "ab");
        let added = ChatEvent::ItemAdded { item: message("msg_1", "") };
        let begun = ItemUpdate::PartAdded { content_index: 0, content: ContentPart::text("") };
        let begun = ChatEvent::ItemUpdated { item_id: "msg_1".into(), update: begun };
        assert_eq!(collect(vec![added, begun, delta("msg_1", "a"), delta("msg_1", "b")]).text, "ab");
    }

    #[test]
    fn a_finished_item_replaces_its_streamed_text() {
        let done = ChatEvent::ItemDone { item: message("msg_1", "whole") };
        let turn = collect(vec![piece("msg_1", "who"), done]);
        assert_eq!((turn.text.as_str(), turn.thread_id.as_str()), ("whole", "thr_1"));
        assert_eq!((turn.events.len(), turn.resumes, turn.skipped), (2, 2, 1));
        let replaced = ChatEvent::ItemReplaced { item: message("msg_1", "new") };
        assert_eq!(collect(vec![delta("msg_1", "old"), replaced, delta("msg_1", "er")]).text, "newer");
    }

    #[test]
    fn messages_keep_their_order_and_removed_ones_are_dropped() {
        let removed = ChatEvent::ItemRemoved { item_id: "b".into() };
        let events = vec![piece("a", "1"), piece("b", "2"), piece("c", "3"), piece("a", "1"), removed];
        assert_eq!(collect(events).text, "11\n\n3");
    }

    #[test]
    fn the_error_is_kept() {
        let turn = collect(vec![ChatEvent::failure(ErrorCode::NodeTimeout, true)]);
        let error = turn.error.unwrap();
        assert_eq!((error.code.as_deref(), error.allow_retry), (Some("node.timeout"), true));
    }
}
