//! Pagination for chat records.

use wire::chat::{Page, PageRequest};

/// Creates a page from the records read, which may include one extra record.
pub(super) fn page<T>(mut records: Vec<T>, asked: &PageRequest, id: impl FnOnce(&T) -> String) -> Page<T> {
    let most = usize::try_from(asked.records()).unwrap_or(usize::MAX);
    let has_more = records.len() > most;
    records.truncate(most);
    let after = records.last().filter(|_| has_more).map(id);
    Page { data: records, has_more, after }
}
