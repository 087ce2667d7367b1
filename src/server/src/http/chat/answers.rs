//! Answers to items that ask for input. An answer continues the turn that ended with the item.

use actix_web::HttpResponse;
use actors::kinds::turn::chat::NewItemAnswer;
use kernel::{ItemKey, ThreadId};
use serde_json::Value;
use store::{Slice, StoreError, StoredThread};
use uuid::Uuid;
use wire::chat::{InputSubmission, ItemAnswer, ItemBody, ThreadItem, ThreadStatus};
use wire::{ErrorCode, FieldError};

use super::turns::{self, AuthorizedRequest};
use super::{dialect, idempotency};
use crate::http::error::{ApiError, ApiResult};

/// Items per query when searching for the last visible one.
const SCANNED_ITEMS: i64 = 100;

/// Answers an item's questions.
pub(super) async fn submit(
    asked: AuthorizedRequest<'_>,
    thread_id: &str,
    item_id: &str,
    submission: &InputSubmission,
) -> ApiResult<HttpResponse> {
    if let Some(response) = turns::replayed(asked).await? {
        return Ok(response);
    }
    let thread = unclosed(asked, thread_id).await?;
    let not_found = || ApiError::new(ErrorCode::ItemNotFound);
    let key = ItemKey::parse(item_id).map_err(|_| not_found())?;
    let found = asked.app.chat().items_named(thread.id, &[key]).await?.pop();
    let item = found.filter(|item| item.id() == item_id && !item.is_hidden()).ok_or_else(not_found)?;
    if !matches!(item.body, ItemBody::StructuredInput { .. }) {
        let problem = FieldError::new("/params/item_id", "kind", "is not a structured input");
        return Err(ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]));
    }
    let answer = item.body.submitted(submission);
    begin(asked, &thread, key, item, answer).await
}

/// Stores a client tool's result. The thread must end with the tool's call.
pub(super) async fn output(
    asked: AuthorizedRequest<'_>,
    thread_id: &str,
    result: Value,
) -> ApiResult<HttpResponse> {
    if let Some(response) = turns::replayed(asked).await? {
        return Ok(response);
    }
    let thread = unclosed(asked, thread_id).await?;
    let last = last_visible(asked, thread.id).await?;
    let call = last.filter(|item| matches!(item.body, ItemBody::ClientToolCall { .. }));
    let Some(call) = call else {
        let problem = FieldError::new("/params/thread_id", "state", "does not end with a client tool call");
        return Err(ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]));
    };
    let key = ItemKey::parse(call.id()).map_err(|_| ApiError::new(ErrorCode::ItemNotFound))?;
    let answer = call.body.returned(result);
    begin(asked, &thread, key, call, answer).await
}

async fn last_visible(asked: AuthorizedRequest<'_>, thread: ThreadId) -> ApiResult<Option<ThreadItem>> {
    let mut after = None;
    loop {
        let slice = Slice { after, ascending: false, limit: SCANNED_ITEMS };
        let items = asked.app.store().items_of(thread, slice).await?;
        let Some(oldest) = items.last() else { return Ok(None) };
        let corrupt = |_| StoreError::Corrupt(format!("the id of item {}", oldest.id()));
        after = Some(ItemKey::parse(oldest.id()).map_err(corrupt)?);
        if let Some(visible) = items.into_iter().find(|item| !item.is_hidden()) {
            return Ok(Some(visible));
        }
    }
}

/// Opens the stream of the continued turn. `answer` is `None` if the item already has one.
async fn begin(
    asked: AuthorizedRequest<'_>,
    thread: &StoredThread,
    key: ItemKey,
    item: ThreadItem,
    answer: Option<ItemAnswer>,
) -> ApiResult<HttpResponse> {
    let AuthorizedRequest { app, access, request, body, session } = asked;
    let Some(answer) = answer else { return Err(not_pending(asked, key).await) };
    let place = app.chat_limits().stream(session, None)?;
    app.chat().check_room(access.workspace())?;
    access.check_budget(app, access.budget_session(Some(thread.id)).as_deref()).await?;
    let new = NewItemAnswer {
        thread: thread.id,
        key,
        item,
        answer,
        by: access.name(),
        dialect: dialect(app, request),
        idempotency: idempotency::key(app, request, access, body)?,
    };
    match app.chat().answer(new).await? {
        Some(started) => turns::answer(asked, started, None, false, place).await,
        None => Err(not_pending(asked, key).await),
    }
}

async fn not_pending(asked: AuthorizedRequest<'_>, key: ItemKey) -> ApiError {
    match stored_stream(asked, key).await {
        Ok(stream) => ApiError::new(ErrorCode::ItemNotPending).with_stream(stream),
        Err(error) => error.into(),
    }
}

/// Returns the stream of the turn that continues with the answer, until it is deleted.
async fn stored_stream(asked: AuthorizedRequest<'_>, key: ItemKey) -> Result<Option<Uuid>, StoreError> {
    let Some(stream) = asked.app.store().stream_of_answer(key).await? else { return Ok(None) };
    Ok(asked.app.chat().stream(stream).await?.map(|_| stream))
}

/// Returns the thread if it accepts answers, which locked threads do.
async fn unclosed(asked: AuthorizedRequest<'_>, thread_id: &str) -> ApiResult<StoredThread> {
    let thread = asked.access.thread_named(asked.app, thread_id).await?;
    match thread.status {
        ThreadStatus::Active | ThreadStatus::Locked { .. } => Ok(thread),
        ThreadStatus::Closed { .. } => Err(ApiError::new(ErrorCode::ThreadClosed)),
    }
}
