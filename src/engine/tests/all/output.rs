//! An output for tests.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use engine::ports::{ImmediateEvent, Output, SentAnnotation, SentItem, ThreadChange, Undone};
use parking_lot::Mutex;
use serde_json::json;

/// An output that stores everything.
#[derive(Debug, Default)]
pub(crate) struct MemoryOutput {
    /// `node` and piece.
    pub(crate) pieces: Mutex<Vec<(String, String)>>,
    sent: Mutex<String>,
    /// Progress and notices.
    pub(crate) aside: Mutex<Vec<String>>,
    /// Whether key lookups never end.
    pub(crate) is_stuck: AtomicBool,
}

impl MemoryOutput {
    /// All messages, `|` between them.
    pub(crate) fn text(&self) -> String {
        self.sent.lock().clone()
    }
}

#[async_trait]
impl Output for MemoryOutput {
    async fn text(&self, node: &str, piece: &str) {
        self.pieces.lock().push((node.to_owned(), piece.to_owned()));
        self.sent.lock().push_str(piece);
        tokio::task::yield_now().await;
    }

    async fn annotate(&self, annotations: Vec<SentAnnotation>) {
        for SentAnnotation { source, from_end } in annotations {
            self.aside.lock().push(format!("{from_end} {}", json!(source)));
        }
    }

    async fn undo(&self, _node: &str, parts: &[Undone]) {
        let mut sent = self.sent.lock();
        for part in parts {
            let left = match part {
                Undone::Text(bytes) => sent.len() - bytes,
                Undone::Message(bytes) => sent.strip_suffix('|').unwrap_or(&sent).len() - bytes,
                Undone::Item => sent.rfind('<').unwrap(),
            };
            sent.truncate(left);
        }
    }

    async fn look_up(&self, _key: &str) {
        if self.is_stuck.load(Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
    }

    async fn item(&self, item: SentItem) {
        let body = item.body.map(|body| serde_json::to_string(&body).unwrap());
        let key = item.key.map(|key| format!("{key}: ")).unwrap_or_default();
        let more = if item.more { " …" } else { "" };
        self.sent.lock().push_str(&format!("<{key}{}{more}>", body.unwrap_or_default()));
    }

    async fn new_message(&self) {
        self.sent.lock().push('|');
    }

    async fn immediate(&self, event: ImmediateEvent) {
        self.aside.lock().push(match event {
            ImmediateEvent::Progress(text) => text,
            ImmediateEvent::Notice { level, message, title } => {
                format!("{level:?} {message} {:?}", title.as_deref())
            }
            ImmediateEvent::Effect { name, data } => format!("{name} {}", json!(data)),
        });
    }

    async fn change_thread(&self, change: ThreadChange) {
        self.aside.lock().push(format!("{change:?}"));
    }
}
