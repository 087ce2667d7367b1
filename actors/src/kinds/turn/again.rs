//! Data for a turn that retries a message, which is answered again.

use chrono::{DateTime, Utc};
use kernel::{ItemKey, ThreadId};
use serde_json::{Value, json};
use store::batch::CutRow;
use store::{Store, StoreError, StoredItem};
use wire::chat::{ItemBody, ThreadItem};

use crate::text::stored_json;

/// A message that is answered again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Again {
    /// The message.
    pub(super) item: ItemKey,
    /// The position of the retry request: user messages from here on are later ones.
    pub(super) asked: ItemKey,
    /// Whether the items that came meanwhile have been cut.
    pub(super) started: bool,
}

impl Again {
    /// The options stored in the run's row.
    pub(super) fn options(&self) -> Value {
        json!({"item": self.item.wire("msg"), "asked": self.asked.wire("msg")})
    }

    /// Parses the options in a run's row; `None` if the run answers its message for the first time.
    pub(super) fn stored(options: Option<&str>, started: bool) -> Option<Self> {
        let options = stored_json(options?).ok()?;
        let again = options.get("again")?;
        let key = |name| again.get(name).and_then(Value::as_str).and_then(|id| ItemKey::parse(id).ok());
        Some(Self { item: key("item")?, asked: key("asked")?, started })
    }

    /// Cuts the items after the message, except later messages and the answers of earlier turns, the last of which is
    /// `kept`. `id`: the current position.
    pub(super) fn cut(&self, thread_id: ThreadId, id: ItemKey, kept: ItemKey) -> CutRow {
        CutRow { thread_id, id, behind: self.item, messages_from: self.asked, answers_behind: kept }
    }

    /// Whether the cut removes an item.
    pub(super) fn takes_out(&self, item: &ThreadItem, kept: ItemKey) -> bool {
        ItemKey::parse(item.id())
            .is_ok_and(|key| key > self.item && if is_users(item) { key < self.asked } else { key > kept })
    }

    /// Whether a model reads an item before it answers the message again.
    pub(super) fn reads(&self, item: &ThreadItem, kept: ItemKey) -> bool {
        ItemKey::parse(item.id()).is_ok_and(|key| key <= self.item || !is_users(item) && key <= kept)
    }
}

/// Returns the last item after a message that belongs to an earlier turn, for which the message waited; otherwise the
/// message itself.
pub(super) async fn answered_before(
    store: &Store,
    thread: ThreadId,
    message: ItemKey,
    items: &[StoredItem],
) -> Result<ItemKey, StoreError> {
    let id = message.wire("msg");
    let items = || items.iter().map(|stored| &stored.item);
    let Some(at) = items().find(|item| item.id() == id).and_then(created_at) else { return Ok(message) };
    match store.end_of_turns_before(thread, at).await? {
        None => Ok(message),
        // An earlier turn has not ended, so nothing after it has started.
        Some(end) if end == DateTime::<Utc>::MAX_UTC => Ok(ItemKey([u8::MAX; ItemKey::LENGTH])),
        Some(end) => {
            let theirs =
                items().filter(|item| !is_users(item) && created_at(item).is_some_and(|at| at <= end));
            let last = theirs.filter_map(|item| ItemKey::parse(item.id()).ok()).max();
            Ok(last.map_or(message, |last| last.max(message)))
        }
    }
}

pub(super) fn is_users(item: &ThreadItem) -> bool {
    matches!(item.body, ItemBody::UserMessage { .. })
}

pub(super) fn created_at(item: &ThreadItem) -> Option<DateTime<Utc>> {
    DateTime::parse_from_rfc3339(&item.created_at).ok().map(|at| at.to_utc())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_options_are_read_back() {
        let again = Again { item: ItemKey([1; 24]), asked: ItemKey([2; 24]), started: false };
        let options = json!({"again": again.options()}).to_string();
        assert_eq!(Again::stored(Some(&options), false), Some(again));
        assert_eq!(Again::stored(Some(&options), true), Some(Again { started: true, ..again }));
        for other in [None, Some("{}"), Some("{"), Some(r#"{"again":{"item":"x"}}"#)] {
            assert_eq!(Again::stored(other, false), None, "{other:?}");
        }
    }
}
