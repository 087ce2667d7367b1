//! Actions of widgets and the page: either start a turn or only change the widget.

use actix_web::HttpResponse;
use actors::kinds::action::{Acted, NewAction};
use actors::kinds::turn::chat::ActionInput;
use kernel::ItemKey;
use serde_json::{Map, Value};
use store::{FoundItem, StoredThread};
use uuid::Uuid;
use wire::chat::{
    ActionRequest, ChatAnswer, ChatEvent, ItemBody, StreamErrorCode, StreamOptions, ThreadItem,
};
use wire::{ErrorCode, FieldError, sse};

use super::turns::{self, AuthorizedRequest, TurnInput};
use super::{headers, idempotency};
use crate::http::error::{ApiError, ApiResult};

/// The source of an action.
enum ActionSource {
    /// The page itself.
    Page,
    /// A widget.
    Widget(Box<FoundItem>),
    /// An item that is not a widget.
    Other,
}

/// Starts a turn for an action.
pub(super) async fn begin(
    asked: AuthorizedRequest<'_>,
    request: ActionRequest,
    metadata: Map<String, Value>,
) -> ApiResult<HttpResponse> {
    if let Some(response) = turns::replayed(asked).await? {
        return Ok(response);
    }
    let thread = turns::open_thread(asked.app, asked.access, &request.thread_id).await?;
    let from = match widget(asked, &thread, request.item_id.as_deref()).await? {
        ActionSource::Other => return Ok(refused(asked.app.new_id()?, &[not_a_widget()])),
        ActionSource::Page => None,
        ActionSource::Widget(found) => Some(found),
    };
    if !Box::pin(asked.access.version_of(asked.app, &thread)).await?.plan.reads_action() {
        let options = ChatEvent::StreamOptions { stream_options: StreamOptions { allow_cancel: true } };
        let unhandled = ChatEvent::failure(ErrorCode::ChatActionUnhandled, false);
        return Ok(refused(asked.app.new_id()?, &[options, unhandled]));
    }
    let action = Box::new(input(request, from.as_deref()));
    turns::begin(asked, TurnInput::Action { thread, action }, metadata).await
}

/// Runs an action that only changes its widget.
pub(super) async fn act(
    asked: AuthorizedRequest<'_>,
    request: ActionRequest,
    metadata: Map<String, Value>,
) -> ApiResult<ChatAnswer> {
    let AuthorizedRequest { app, access, .. } = asked;
    let place = app.chat_limits().stream(asked.session, None)?;
    let key = idempotency::key(app, asked.request, access, asked.body)?;
    if let Some(key) = &key
        && let Some(acted) = app.actions().acted(key).await?
    {
        access.thread_named(app, &request.thread_id).await?;
        return answer(acted);
    }
    let thread = turns::open_thread(app, access, &request.thread_id).await?;
    let found = match widget(asked, &thread, request.item_id.as_deref()).await? {
        ActionSource::Other => {
            let problem = FieldError::new("/params/item_id", "kind", "is not a widget");
            return Err(ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]));
        }
        ActionSource::Page => None,
        ActionSource::Widget(found) => Some(found),
    };
    let version = Box::pin(access.version_of(app, &thread)).await?;
    if !version.plan.reads_action() {
        return Err(ApiError::new(ErrorCode::ChatActionUnhandled));
    }
    let session = access.budget_session(Some(thread.id));
    access.check_budget_of(app, &version, session.as_deref()).await?;
    let session = session.filter(|_| version.plan.may_use_models());
    let action = input(request, found.as_deref());
    let widget = found.map(|found| (found.id, found.item));
    let new = NewAction {
        workspace: access.workspace(),
        workflow: access.workflow(),
        version,
        thread: thread.id,
        widget,
        action,
        metadata,
        session,
    };
    // The run continues and keeps its slot even if the client disconnects.
    let actions = app.actions().clone();
    let acting = actix_web::rt::spawn(async move {
        let _place = place;
        actions.act(new, key).await
    });
    let acted = acting.await.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    answer(acted?)
}

fn answer(acted: Acted) -> ApiResult<ChatAnswer> {
    match acted {
        Acted::Done(Some(updated_item)) => Ok(ChatAnswer::Updated { updated_item }),
        Acted::Done(None) => Ok(ChatAnswer::Done {}),
        Acted::Failed => Err(ApiError::new(ErrorCode::ChatActionFailed).with_cause("the run failed")),
        Acted::TooLate => {
            Err(ApiError::new(ErrorCode::ChatActionTimeout).with_cause("the run took too long"))
        }
    }
}

async fn widget(
    asked: AuthorizedRequest<'_>,
    thread: &StoredThread,
    id: Option<&str>,
) -> ApiResult<ActionSource> {
    let not_found = || ApiError::new(ErrorCode::ItemNotFound);
    let Some(id) = id else { return Ok(ActionSource::Page) };
    let key = ItemKey::parse(id).map_err(|_| not_found())?;
    let found = asked.app.store().items_of_run(thread.id, Uuid::nil(), &[key]).await?;
    let is_it = |item: &ThreadItem| item.id() == id && !item.is_hidden();
    let found = found.into_iter().find(|found| is_it(&found.item)).ok_or_else(not_found)?;
    Ok(match found.item.body {
        ItemBody::Widget { .. } => ActionSource::Widget(Box::new(found)),
        _ => ActionSource::Other,
    })
}

fn input(request: ActionRequest, from: Option<&FoundItem>) -> ActionInput {
    let widget = from.and_then(|found| match &found.item.body {
        ItemBody::Widget { widget, .. } => Some(Value::Object(widget.0.clone())),
        _ => None,
    });
    ActionInput {
        kind: request.action.kind,
        payload: request.action.payload,
        item_id: request.item_id,
        key: from.and_then(|found| found.key.clone()),
        widget,
    }
}

fn not_a_widget() -> ChatEvent {
    ChatEvent::Error {
        code: StreamErrorCode::Stream,
        message: Some("The item is not a widget.".to_owned()),
        allow_retry: false,
        error_code: Some(ErrorCode::ChatInvalidRequest.as_str().to_owned()),
    }
}

/// A stream with only these events: no run has started.
fn refused(stream: Uuid, events: &[ChatEvent]) -> HttpResponse {
    let mut frames = String::new();
    for (seq, event) in (1..).zip(events) {
        sse::push_event(&mut frames, stream, seq, &serde_json::to_string(event).unwrap_or_default());
    }
    headers(stream).body(frames)
}
