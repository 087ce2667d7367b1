//! Requests that start a turn and respond with its stream.

use std::sync::Arc;

use actix_web::{HttpRequest, HttpResponse};
use actors::kinds::turn::chat::{ActionInput, Attached, IdempotencyKey, NewTurn, Owner, StartedTurn, Target};
use actors::plans::LoadedVersion;
use auth::visitor::Visitor;
use kernel::{ItemKey, ThreadId};
use serde_json::{Map, Value};
use store::{OwnerKind, StoredThread};
use wire::chat::{Attachment, ItemBody, ThreadStatus, UserMessageInput};
use wire::{ErrorCode, FieldError};

use super::access::{ChatAccess, version_of};
use super::attachments::{self, Links};
use super::limits::StreamPlace;
use super::{cookie, dialect, headers, idempotency};
use crate::http::App;
use crate::http::error::{ApiError, ApiResult};
use crate::http::events::{self, ChatReader};

/// A request from an authorized chat caller.
#[derive(Clone, Copy)]
pub(super) struct AuthorizedRequest<'a> {
    pub(super) app: &'a App,
    pub(super) access: &'a ChatAccess,
    pub(super) request: &'a HttpRequest,
    pub(super) body: &'a [u8],
    /// The key for session limits.
    pub(super) session: Option<&'a str>,
}

/// The input of a turn.
pub(super) enum TurnInput {
    /// The first message in a thread.
    First(UserMessageInput),
    /// Another message in a thread.
    More(String, UserMessageInput),
    /// An action of a widget or of the page.
    Action { thread: StoredThread, action: Box<ActionInput> },
    /// A message in the thread, to be answered again.
    Again { thread_id: String, item_id: String },
}

/// Returns the stream of the turn started by an earlier request with the same key, if any, even if the request's target
/// has changed since.
pub(super) async fn replayed(asked: AuthorizedRequest<'_>) -> ApiResult<Option<HttpResponse>> {
    let AuthorizedRequest { app, access, request, body, session } = asked;
    let Some(key) = idempotency::key(app, request, access, body)? else { return Ok(None) };
    let Some(started) = app.chat().started(&key).await? else { return Ok(None) };
    let place = app.chat_limits().stream(session, None)?;
    answer(asked, started, None, false, place).await.map(Some)
}

/// Starts the turn, or finds it by its key.
pub(super) async fn begin(
    asked: AuthorizedRequest<'_>,
    said: TurnInput,
    metadata: Map<String, Value>,
) -> ApiResult<HttpResponse> {
    let AuthorizedRequest { app, access, request, body, session: caller } = asked;
    let place = app.chat_limits().stream(caller, None)?;
    let mut key = idempotency::key(app, request, access, body)?;
    let is_first = matches!(said, TurnInput::First(_));
    if let Some(key) = &key
        && !is_first
        && let Some(started) = Box::pin(app.chat().started(key)).await?
    {
        // Replayed even if the request's target has changed since.
        return answer(asked, started, None, false, place).await;
    }
    let ResolvedTurn { target, canary_version, input, attachments, visitor } = target(asked, said).await?;
    let new_visitor = visitor.as_ref().map(|visitor| format!("visitor:{}", visitor.id()));
    let mut retry_gets_cookie = false;
    if let (Some(key), Some(visitor)) = (&mut key, &new_visitor) {
        // The cookie is sent with the response head, so a later retry presents it.
        key.also = Some(idempotency::scope_of(access, visitor));
        retry_gets_cookie = idempotency::is_secret(&key.key);
    }
    let versions = Box::pin(access.versions(app)).await?;
    let version = version_of(&versions, canary_version)?;
    let canary = versions.canary.filter(|_| is_first);
    let candidates: Vec<_> =
        [&version].into_iter().chain(canary.as_ref().map(|canary| &canary.version)).collect();
    let session = new_visitor.or_else(|| access.budget_session(target.thread()));
    let first_key = key.as_ref().filter(|_| is_first);
    check_budgets(asked, first_key, &candidates, session.as_deref()).await?;
    let title = if is_first { access.title(session.clone()) } else { None };
    let session = session.filter(|_| candidates.iter().any(|version| version.plan.may_use_models()));
    let shows_images = candidates.iter().any(|version| version.plan.may_show_images());
    let asks_base = shows_images && app.config().http.public_base_url.is_none();
    let base = asks_base.then(|| app.public_base(request));
    let started = app
        .chat()
        .start(NewTurn {
            workspace: access.workspace(),
            workflow: access.workflow(),
            version,
            canary,
            target,
            input,
            attachments,
            metadata,
            dialect: dialect(app, request),
            busy: access.busy(),
            session,
            base,
            title,
            idempotency: key,
        })
        .await?;
    answer(asked, started, visitor, retry_gets_cookie, place).await
}

/// Refuses a turn if a version that may run it has no budget left. A turn started by an earlier request with the key is
/// returned regardless of later usage.
async fn check_budgets(
    asked: AuthorizedRequest<'_>,
    key: Option<&IdempotencyKey>,
    versions: &[&Arc<LoadedVersion>],
    session: Option<&str>,
) -> ApiResult<()> {
    let AuthorizedRequest { app, access, .. } = asked;
    if let Some(key) = key
        && access.has_limits()
        && Box::pin(app.chat().started(key)).await?.is_some()
    {
        return Ok(());
    }
    for version in versions {
        access.check_budget_of(app, version, session).await?;
    }
    Ok(())
}

/// Responds with the turn's stream, and the visitor's cookie if it must be set.
pub(super) async fn answer(
    asked: AuthorizedRequest<'_>,
    started: StartedTurn,
    mut visitor: Option<Visitor>,
    retry_gets_cookie: bool,
    place: StreamPlace,
) -> ApiResult<HttpResponse> {
    let AuthorizedRequest { app, request, .. } = asked;
    let dialect = dialect(app, request);
    place.reads(started.reader.stream());
    let mut response = headers(started.reader.stream());
    if started.replayed {
        response.insert_header(crate::http::idempotency::REPLAYED);
        // The started turn's thread may have been deleted since.
        let thread = Box::pin(app.chat().thread(started.thread)).await?;
        let thread = thread.ok_or_else(|| ApiError::new(ErrorCode::ThreadNotFound))?;
        visitor = if retry_gets_cookie { idempotency::first_visitor(app, thread) } else { None };
    }
    if let Some(visitor) = visitor {
        response.cookie(cookie::make(app, &visitor, request));
    }
    let reader = if started.replayed { started.reader.marking_live() } else { started.reader };
    let chat_reader = ChatReader::new(place, request);
    Ok(response.streaming(events::body(reader, app, Some(dialect), Some(chat_reader))))
}

/// A turn to start.
struct ResolvedTurn {
    /// The target of the message.
    target: Target,
    /// The canary version that the thread started with.
    canary_version: Option<i32>,
    input: UserMessageInput,
    attachments: Vec<Attached>,
    /// The visitor whose cookie must be set.
    visitor: Option<Visitor>,
}

impl ResolvedTurn {
    fn in_thread(
        thread: &StoredThread,
        target: Target,
        input: UserMessageInput,
        attachments: Vec<Attached>,
    ) -> Self {
        Self { target, canary_version: thread.canary, input, attachments, visitor: None }
    }
}

/// Resolves the target, the attachments, and the visitor whose cookie must be set.
async fn target(asked: AuthorizedRequest<'_>, said: TurnInput) -> ApiResult<ResolvedTurn> {
    let AuthorizedRequest { app, access, request, .. } = asked;
    let links = Links::new(app, request);
    let (thread, input) = match said {
        TurnInput::First(input) => (None, input),
        TurnInput::More(thread, input) => (Some(open_thread(app, access, &thread).await?), input),
        TurnInput::Action { thread, action } => {
            let input = UserMessageInput::default();
            return Ok(ResolvedTurn::in_thread(
                &thread,
                Target::Action(thread.id, action),
                input,
                Vec::new(),
            ));
        }
        TurnInput::Again { thread_id, item_id } => {
            let thread = open_thread(app, access, &thread_id).await?;
            let (key, input, attachments) = message(app, thread.id, &item_id).await?;
            let attached = attachments::again(app, &attachments, &links).await?;
            return Ok(ResolvedTurn::in_thread(&thread, Target::Again(thread.id, key), input, attached));
        }
    };
    let attached = attachments::of_message(app, access, &input.attachments, &links).await?;
    if let Some(thread) = thread {
        return Ok(ResolvedTurn::in_thread(&thread, Target::Thread(thread.id), input, attached));
    }
    if let Some(owner) = access.new_owner() {
        let target = Target::NewThread(owner);
        return Ok(ResolvedTurn {
            target,
            canary_version: None,
            input,
            attachments: attached,
            visitor: None,
        });
    }
    let fresh = app.visitors().fresh(app.random())?;
    let owner = Owner { kind: OwnerKind::Visitor, id: Some(fresh.id().to_owned()), has_cookie: false };
    let target = Target::NewThread(owner);
    Ok(ResolvedTurn { target, canary_version: None, input, attachments: attached, visitor: Some(fresh) })
}

/// Returns the thread if it accepts messages.
pub(super) async fn open_thread(app: &App, access: &ChatAccess, id: &str) -> ApiResult<StoredThread> {
    let thread = access.thread_named(app, id).await?;
    match thread.status {
        ThreadStatus::Active => Ok(thread),
        ThreadStatus::Locked { .. } => Err(ApiError::new(ErrorCode::ThreadLocked)),
        ThreadStatus::Closed { .. } => Err(ApiError::new(ErrorCode::ThreadClosed)),
    }
}

/// Returns a user's message in the thread as it was sent.
async fn message(
    app: &App,
    thread: ThreadId,
    id: &str,
) -> ApiResult<(ItemKey, UserMessageInput, Vec<Attachment>)> {
    let not_found = || ApiError::new(ErrorCode::ItemNotFound);
    let key = ItemKey::parse(id).map_err(|_| not_found())?;
    let item = app.chat().items_named(thread, &[key]).await?.pop();
    match item.filter(|item| item.id() == id && !item.is_hidden()).map(|item| item.body) {
        Some(ItemBody::UserMessage { content, quoted_text, inference_options, attachments }) => {
            let input = UserMessageInput { content, attachments: Vec::new(), quoted_text, inference_options };
            Ok((key, input, attachments))
        }
        Some(_) => {
            let problem = FieldError::new("/params/item_id", "kind", "is not a user message");
            Err(ApiError::problems(ErrorCode::ChatInvalidRequest, vec![problem]))
        }
        None => Err(not_found()),
    }
}
