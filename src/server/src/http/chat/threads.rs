//! Requests about threads: their answer is JSON.

use actors::kinds::turn::chat::FeedbackInput;
use kernel::{ItemKey, ThreadId};
use serde::Serialize;
use store::{OwnerKind, Slice};
use wire::chat::{FeedbackKind, Order, Page, PageRequest, Thread, ThreadItem};
use wire::{ErrorCode, FieldError};

use super::access::Access;
use super::attachments::Links;
use super::records;
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};

/// `{}`.
#[derive(Serialize)]
pub(super) struct Empty {}

/// The thread with its first items.
pub(super) async fn get(app: &App, access: &Access, links: &Links<'_>, thread_id: &str) -> ApiResult<Thread> {
    let thread = access.thread_named(app, thread_id).await?;
    let first = PageRequest { order: Some(Order::Asc), ..PageRequest::default() };
    let items = page_of_items(app, links, thread.id, &first).await?;
    Ok(Thread { items, ..thread.into() })
}

/// The caller's threads with this workflow. A caller without a cookie has none: an id grants access, it does not
/// say who the caller is.
pub(super) async fn list(app: &App, access: &Access, page: &PageRequest) -> ApiResult<Page<Thread>> {
    let not_found = || ApiError::new(ErrorCode::ThreadNotFound);
    let after = page.after.as_deref().map(ThreadId::parse).transpose().map_err(|_| not_found())?;
    let Some(of) = access.threads() else { return Ok(Page::default()) };
    let threads = app.chat().threads_of(of, slice(page, after)).await?.ok_or_else(not_found)?;
    let threads = threads.into_iter().map(Thread::from).collect();
    Ok(records::page(threads, page, |thread: &Thread| thread.id.clone()))
}

/// A page of the thread's items.
pub(super) async fn items(
    app: &App,
    access: &Access,
    links: &Links<'_>,
    thread_id: &str,
    page: &PageRequest,
) -> ApiResult<Page<ThreadItem>> {
    let thread = access.thread_named(app, thread_id).await?;
    page_of_items(app, links, thread.id, page).await
}

/// The thread under its new title, without its items.
pub(super) async fn rename(app: &App, access: &Access, thread_id: &str, title: &str) -> ApiResult<Thread> {
    let thread = access.thread_named(app, thread_id).await?;
    let renamed = app.chat().rename(thread.id, title).await?;
    renamed.map(Thread::from).ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))
}

/// The thread is gone, and its turns are about to end.
pub(super) async fn delete(app: &App, access: &Access, thread_id: &str) -> ApiResult<Empty> {
    let thread = access.thread_named(app, thread_id).await?;
    if app.chat().delete(thread.id).await? {
        Ok(Empty {})
    } else {
        Err(ApiError::new(ErrorCode::ThreadNotFound))
    }
}

/// What the caller thinks of items is kept in the place of what they thought before.
pub(super) async fn feedback(
    app: &App,
    access: &Access,
    thread_id: &str,
    item_ids: &[String],
    (kind, comment): (FeedbackKind, Option<&str>),
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

/// Hidden items count for the page and are not shown.
async fn page_of_items(
    app: &App,
    links: &Links<'_>,
    thread: ThreadId,
    page: &PageRequest,
) -> ApiResult<Page<ThreadItem>> {
    // Where an item stands is in its id, whether it is still there or not.
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

/// One record more than asked for, to see whether anything follows.
fn slice<K>(page: &PageRequest, after: Option<K>) -> Slice<K> {
    Slice { after, ascending: page.direction() == Order::Asc, limit: i64::from(page.records()) + 1 }
}
