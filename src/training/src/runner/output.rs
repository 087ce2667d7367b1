//! The text output of a case.

use async_trait::async_trait;
use engine::ports::{ImmediateEvent, Output, SentAnnotation, SentItem, ThreadChange, Undone};
use parking_lot::Mutex;

/// Collects the text of nodes as messages, the current one last. Items and events exist only as node results.
#[derive(Debug, Default)]
pub(super) struct CaseText(Mutex<Vec<String>>);

impl CaseText {
    /// All text, with a blank line between two messages.
    pub(super) fn all(&self) -> String {
        let messages = self.0.lock();
        let said: Vec<&str> =
            messages.iter().map(String::as_str).filter(|message| !message.is_empty()).collect();
        said.join("\n\n")
    }
}

/// Removes `bytes` bytes from the end.
fn cut(message: Option<&mut String>, bytes: usize) {
    if let Some(message) = message {
        let mut end = message.len().saturating_sub(bytes);
        while !message.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        message.truncate(end);
    }
}

#[async_trait]
impl Output for CaseText {
    async fn text(&self, _node: &str, piece: &str) {
        let mut messages = self.0.lock();
        match messages.last_mut() {
            Some(current) => current.push_str(piece),
            None => messages.push(piece.to_owned()),
        }
    }

    async fn annotate(&self, _annotations: Vec<SentAnnotation>) {}

    async fn undo(&self, _node: &str, parts: &[Undone]) {
        let mut messages = self.0.lock();
        for part in parts {
            match part {
                Undone::Text(bytes) => cut(messages.last_mut(), *bytes),
                Undone::Message(bytes) => {
                    let last = messages.len().checked_sub(2);
                    cut(last.and_then(|last| messages.get_mut(last)), *bytes);
                }
                Undone::Item => {}
            }
        }
    }

    async fn item(&self, _item: SentItem) {}

    async fn new_message(&self) {
        let mut messages = self.0.lock();
        if messages.last().is_some_and(|current| !current.is_empty()) {
            messages.push(String::new());
        }
    }

    async fn immediate(&self, _event: ImmediateEvent) {}

    async fn change_thread(&self, _change: ThreadChange) {}
}
