//! Thread requests with JSON responses.

use actors::kinds::turn::chat::FeedbackInput;
use kernel::{ItemKey, ThreadId};
use serde::Serialize;
use store::{OwnerKind, Slice};
use wire::chat::{FeedbackKind, Order, Page, PageRequest, Thread, ThreadItem};
use wire::{ErrorCode, FieldError};

use super::access::ChatAccess;
use super::attachments::Links;
use super::records;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// An empty object, `{}`.
#[derive(Serialize)]
pub(super) struct Empty {}

/// Returns the thread with its first items.
pub(super) async fn get(
    app: &App,
    access: &ChatAccess,
    links: &Links<'_>,
    thread_id: &str,
) -> ApiResult<Thread> {
    let thread = access.thread_named(app, thread_id).await?;
    let first = PageRequest { order: Some(Order::Asc), ..PageRequest::default() };
    let items = page_of_items(app, links, thread.id, &first).await?;
    Ok(Thread { items, ..thread.into() })
}

/// Lists the caller's threads for this workflow. A caller without a cookie has none: a thread id grants access but does
/// not identify the caller.
pub(super) async fn list(app: &App, access: &ChatAccess, page: &PageRequest) -> ApiResult<Page<Thread>> {
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound);
    let after = page.after.as_deref().map(ThreadId::parse).transpose().map_err(|_| not_found())?;
    let Some(of) = access.threads() else { return Ok(Page::default()) };
    let threads = app.chat().threads_of(of, slice(page, after)).await?.ok_or_else(not_found)?;
    let threads = threads.into_iter().map(Thread::from).collect();
    Ok(records::page(threads, page, |thread: &Thread| thread.id.clone()))
}

/// Returns a page of thread items.
pub(super) async fn items(
    app: &App,
    access: &ChatAccess,
    links: &Links<'_>,
    thread_id: &str,
    page: &PageRequest,
) -> ApiResult<Page<ThreadItem>> {
    let thread = access.thread_named(app, thread_id).await?;
    page_of_items(app, links, thread.id, page).await
}

/// Renames the thread; returns it without its items.
pub(super) async fn rename(
    app: &App,
    access: &ChatAccess,
    thread_id: &str,
    title: &str,
) -> ApiResult<Thread> {
    let thread = access.thread_named(app, thread_id).await?;
    let renamed = app.chat().rename(thread.id, title).await?;
    renamed.map(Thread::from).ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))
}

/// Deletes the thread and ends its turns.
pub(super) async fn delete(app: &App, access: &ChatAccess, thread_id: &str) -> ApiResult<Empty> {
    let thread = access.thread_named(app, thread_id).await?;
    if app.chat().delete(thread.id).await? {
        Ok(Empty {})
    } else {
        Err(ApiError::new(ErrorCode::ThreadNotFound))
    }
}

/// Stores the caller's feedback on items and replaces any earlier feedback.
pub(super) async fn feedback(
    app: &App,
    access: &ChatAccess,
    thread_id: &str,
    item_ids: &[String],
    kind: FeedbackKind,
    comment: Option<&str>,
) -> ApiResult<Empty> {
    let thread = access.thread_named(app, thread_id).await?;
    app.chat().check_room(access.workspace())?;
    let (author_kind, author_id) = access.owner().unwrap_or((OwnerKind::Anyone, ""));
    let kind_only = !access.stores_content();
    let given =
        FeedbackInput { thread: thread.id, item_ids, author_kind, author_id, kind, comment, kind_only };
    if !app.chat().feedback(given).await? {
        return Err(ApiError::new(ErrorCode::ItemNotFound));
    }
    Ok(Empty {})
}

/// Hidden items count towards the page but are omitted.
async fn page_of_items(
    app: &App,
    links: &Links<'_>,
    thread: ThreadId,
    page: &PageRequest,
) -> ApiResult<Page<ThreadItem>> {
    // An item id contains the item's position, so the item need not exist any more.
    let after = page.after.as_deref().map(ItemKey::parse).transpose().map_err(|_| {
        let problem = FieldError::new("/params/after", "format", "is not the id of an item");
        ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem])
    })?;
    let items = app.chat().items(thread, slice(page, after)).await?;
    let mut page = records::page(items, page, |item: &ThreadItem| item.id().to_owned());
    page.data.retain(|item| !item.is_hidden());
    page.data.iter_mut().for_each(|item| links.sign(item));
    Ok(page)
}

/// Requests one extra record, to see whether a next page exists.
fn slice<K>(page: &PageRequest, after: Option<K>) -> Slice<K> {
    Slice { after, ascending: page.direction() == Order::Asc, limit: i64::from(page.records()) + 1 }
}
