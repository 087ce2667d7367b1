//! Node output on its way to readers.

use async_trait::async_trait;
use engine::ports::{ImmediateEvent, Journal, Output, SentAnnotation, SentItem, ThreadChange, Undone};

use super::{RunWriter, WriterInner};
use crate::run::EventWriter;

#[async_trait]
impl<T: EventWriter> Output for RunWriter<T> {
    async fn text(&self, node: &str, piece: &str) {
        self.note(|events| events.text(node, piece));
        self.room_for_text(piece.len()).await;
    }

    async fn annotate(&self, annotations: Vec<SentAnnotation>) {
        self.note(|events| events.annotate(annotations));
        self.room().await;
    }

    async fn undo(&self, node: &str, parts: &[Undone]) {
        self.with(|events| events.undo(node, parts));
    }

    async fn look_up(&self, key: &str) {
        let Some(thread) = self.with(|events| events.looks_up(key)) else { return };
        let WriterInner { key: run, ports, state, .. } = &*self.inner;
        // A pending cut must be committed first, or the lookup finds items that are about to be removed.
        if state.lock().is_cut {
            self.commit().await;
        }
        let found = self.ask("an item by its key", || ports.store.item_with_key(thread, key, run.id)).await;
        state.lock().found.insert(key.to_owned(), found);
    }

    async fn item(&self, item: SentItem) {
        self.note_with(|state| {
            let earlier = item.key.as_ref().and_then(|key| state.found.get(key).cloned().flatten());
            state.events.item(item, earlier)
        });
        self.room().await;
    }

    async fn new_message(&self) {
        self.note(EventWriter::new_message);
        self.room().await;
    }

    async fn immediate(&self, event: ImmediateEvent) {
        self.note(|events| events.immediate(event));
        self.room().await;
    }

    async fn change_thread(&self, change: ThreadChange) {
        let Some(thread) = self.with(|events| events.thread()) else { return };
        // Serialized, so the next change finds this one stored: events contain the whole thread.
        let _alone = self.inner.thread_change.lock().await;
        if let Some(started) = Journal::started(self)
            && started.await.is_err()
        {
            return;
        }
        let store = &self.inner.ports.store;
        let Some(stored) = self.ask("the thread", || store.thread(thread)).await else { return };
        if self.with(|events| events.change_thread(stored, change)) {
            self.commit().await;
        }
    }
}
