//! Feedback on items, with copies of the turns that it rates.

use std::collections::{BTreeMap, BTreeSet};

use kernel::{ItemKey, ThreadId};
use serde_json::Value;
use store::{Feedback, OwnerKind, RatedItem, RatedTurn, StoreError, StoredAttachment, StoredItem};
use uuid::Uuid;
use wire::chat::{FeedbackKind, ItemBody, ThreadItem};

use super::Chat;
use crate::kinds::turn::history::{TurnItems, files, messages, paired};
use crate::kinds::turn::refill;

/// Maximum messages per copy; the newest are kept.
const MOST_MESSAGES: usize = 200;
/// Maximum message bytes per copy, except that at least one message is kept.
const LARGEST_MESSAGES: usize = 256 * 1024;

/// One author's feedback on items in a thread.
#[derive(Debug, Clone, Copy)]
pub struct FeedbackInput<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// The items' ids.
    pub item_ids: &'a [String],
    /// Kind of the author.
    pub author_kind: OwnerKind,
    /// The author's id; empty if the author is unknown.
    pub author_id: &'a str,
    /// The rating.
    pub kind: FeedbackKind,
    /// The reason.
    pub comment: Option<&'a str>,
    /// Whether only the kind is stored, because the workflow stores no content.
    pub kind_only: bool,
}

impl Chat {
    /// Stores feedback, with copies of the items' turns. Returns false, and stores nothing, if an item or the thread is
    /// not found.
    ///
    /// # Errors
    /// [`StoreError`] if the database does not answer.
    pub async fn feedback(&self, given: FeedbackInput<'_>) -> Result<bool, StoreError> {
        let store = &self.ports.store;
        let stored = store.thread_items(given.thread).await?;
        let Some(rated) = rated(&stored, given.item_ids) else { return Ok(false) };
        let turns = match given.kind_only {
            true => Vec::new(),
            false => {
                let files = files(store, given.thread, &stored).await?;
                let mut turns = turns(stored, &files, &rated);
                for turn in &mut turns {
                    self.as_read(turn, given.thread).await?;
                }
                turns
            }
        };
        let feedback = Feedback {
            thread: given.thread,
            turns,
            items: rated,
            author_kind: given.author_kind,
            author_id: given.author_id,
            kind: given.kind.as_str(),
            comment: given.comment.filter(|_| !given.kind_only),
        };
        let is_stored = store.put_feedback(feedback).await?;
        if is_stored && let Some(thread) = store.thread(given.thread).await? {
            self.ports.rollouts.canary(thread.workflow_id);
        }
        Ok(is_stored)
    }

    /// Replaces the messages in a copy by those that the turn read, if known: other turns may have come between, and a
    /// turn that continues after a question read its earlier output.
    async fn as_read(&self, turn: &mut RatedTurn, thread: ThreadId) -> Result<(), StoreError> {
        let Some(run) = self.ports.store.run(turn.run).await? else { return Ok(()) };
        let mut read = refill::messages(&self.ports.store, &run, thread).await?;
        // Removes hidden items.
        read.retain(|message| message.get("role").is_none_or(|role| role != "system"));
        if !read.is_empty() {
            turn.messages = newest(read);
        }
        Ok(())
    }
}

/// Returns the items with these ids, each once; `None` if one is missing or hidden.
fn rated(stored: &[StoredItem], ids: &[String]) -> Option<Vec<RatedItem>> {
    let known: BTreeMap<&str, &StoredItem> =
        stored.iter().filter(|one| !one.item.is_hidden()).map(|one| (one.item.id(), one)).collect();
    let ids: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
    let one = |id: &str| {
        let found = known.get(id)?;
        let key = ItemKey::parse(id).ok()?;
        Some(RatedItem { key, prefix: found.item.body.prefix(), run: found.run })
    };
    ids.into_iter().map(one).collect()
}

/// Copies the turns of these items, without hidden items.
fn turns(stored: Vec<StoredItem>, files: &[StoredAttachment], rated: &[RatedItem]) -> Vec<RatedTurn> {
    let mut texts: BTreeMap<Uuid, Vec<String>> =
        rated.iter().filter_map(|item| Some((item.run?, Vec::new()))).collect();
    let mut questions: BTreeMap<Uuid, ItemKey> = BTreeMap::new();
    let stored: Vec<StoredItem> = stored.into_iter().filter(|one| !one.item.is_hidden()).collect();
    for StoredItem { item, answers, run } in &stored {
        let Some((run, texts)) = run.and_then(|run| Some((run, texts.get_mut(&run)?))) else { continue };
        questions.extend(answers.map(|question| (run, question)));
        if let (ItemBody::AssistantMessage { .. }, Some((_, text))) = (&item.body, item.as_message()) {
            texts.push(text);
        }
    }
    let items = paired(stored);
    let keys: Vec<Option<ItemKey>> = items.iter().map(|item| ItemKey::parse(item.id()).ok()).collect();
    let copy = |(run, texts): (Uuid, Vec<String>)| {
        let question = questions.get(&run);
        let place = question.and_then(|question| keys.iter().position(|key| key.as_ref() == Some(question)));
        // A turn without a message read the items that existed at its start.
        let begun = ItemKey::at(run);
        let end = place.map_or_else(
            || keys.iter().take_while(|key| key.is_some_and(|key| key < begun)).count(),
            |place| place + 1,
        );
        // PostgreSQL stores no NUL in text.
        RatedTurn { run, messages: read(&items, end, files), text: texts.join("\n\n").replace('\0', "") }
    };
    texts.into_iter().map(copy).collect()
}

/// The newest of the first `end` items as messages.
fn read(items: &[ThreadItem], end: usize, files: &[StoredAttachment]) -> String {
    let own = items.get(end.saturating_sub(1)).map(ThreadItem::id);
    let latest = items.get(end.saturating_sub(MOST_MESSAGES)..end).unwrap_or_default();
    newest(messages(latest.to_vec(), files, TurnItems { message: own, items: &[] }, None))
}

/// The newest messages that fit, as JSON.
fn newest(mut messages: Vec<Value>) -> String {
    messages.drain(..messages.len().saturating_sub(MOST_MESSAGES));
    let mut room = LARGEST_MESSAGES;
    let fits = messages.iter().rev().take_while(|message| {
        let size = message.to_string().len();
        let fits = room >= size;
        room = room.saturating_sub(size);
        fits
    });
    let dropped = messages.len() - fits.count().max(1).min(messages.len());
    Value::Array(messages.split_off(dropped)).to_string()
}
