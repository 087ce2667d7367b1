//! Threads and pages as clients see them.

use serde_json::Map;
use store::StoredThread;
use wire::chat::{Page, PageRequest, Thread, ThreadStatus};

use crate::http::time;

/// A thread without its items.
pub(super) fn thread(stored: StoredThread) -> Thread {
    Thread {
        id: stored.id.to_string(),
        created_at: time(stored.created_at),
        status: match stored.status.as_str() {
            "locked" => ThreadStatus::Locked { reason: None },
            "closed" => ThreadStatus::Closed { reason: None },
            _ => ThreadStatus::Active,
        },
        items: Page::default(),
        title: stored.title,
        metadata: Map::new(),
    }
}

/// A page of what was read, which may be one record more than the page has.
pub(super) fn page<T>(mut records: Vec<T>, asked: &PageRequest, id: impl FnOnce(&T) -> String) -> Page<T> {
    let most = usize::try_from(asked.records()).unwrap_or(usize::MAX);
    let has_more = records.len() > most;
    records.truncate(most);
    let after = records.last().filter(|_| has_more).map(id);
    Page { data: records, has_more, after }
}
