//! The chat API: one endpoint for all requests, and streams.

mod access;
mod actions;
mod answers;
mod attachments;
mod cookie;
mod dictation;
mod idempotency;
mod limits;
mod records;
mod session_tokens;
mod streams;
mod threads;
mod turns;
mod visitors;
mod workflow;

use actix_web::http::header;
use actix_web::web::{Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use bytes::Bytes;
use kernel::ThreadId;
use serde_json::{Map, Value};
use uuid::Uuid;
use wire::ErrorCode;
use wire::chat::{ChatOperation, ChatRequest, Dialect};
use wire::operations::chat as operations;
use wire::operations::visitors as visitor_operations;

use super::error::{ApiError, ApiResult};
use super::guard::Anyone;
use super::routes::Routes;
use super::{App, body, events};
use access::ChatAccess;
pub(super) use access::check_published;
pub(super) use attachments::Links;
pub(super) use attachments::{Pace, StoreTurns, UploadPermits};
pub(super) use limits::{ChatRateLimits, RateLimit, StreamPlace};
use turns::{AuthorizedRequest, TurnInput};
pub(super) use visitors::{erase, export};

/// Maximum body bytes with a recording.
const RECORDING_LIMIT: usize = 8 << 20;
/// Maximum body bytes charged to the client's network. For larger bodies the sender is identified first.
const ANONYMOUS_BODY: usize = 64 << 10;
/// Sent by the hosted widget with every request.
const FRAME_HEADER: &str = "chatkit-frame-instance-id";

pub(super) fn routes(config: &mut ServiceConfig) {
    Routes::default()
        .on(&operations::CHAT, chat)
        .on(&operations::CREATE_SESSION, session_tokens::create)
        .on(&operations::CREATE_OWN_SESSION, session_tokens::create_own)
        .on(&operations::UPLOAD, attachments::upload)
        .on(&operations::SEND_ATTACHMENT, attachments::send)
        .on(&operations::SEND_ATTACHMENT_AS_FORM, attachments::send)
        .on(&operations::PREVIEW, attachments::preview)
        .on(&operations::READ_CHAT_WORKFLOW, workflow::read)
        .on(&visitor_operations::EXPORT_OWN_DATA, visitors::export_own)
        .on(&visitor_operations::ERASE_OWN_DATA, visitors::erase_own)
        .on(&operations::JOIN, streams::running)
        .on(&operations::RESUME, streams::read)
        .on(&operations::STOP, streams::stop)
        .register(config);
}

/// A request that passed the checks of access and limits.
struct AdmittedRequest {
    access: ChatAccess,
    body: Bytes,
    operation: ChatOperation,
    metadata: Map<String, Value>,
    /// The key for session limits.
    session: Option<String>,
}

/// Checks JSON, `workflow_id`, access, then the request itself, in this order.
async fn admit(app: &App, request: &HttpRequest, payload: Payload) -> ApiResult<AdmittedRequest> {
    let declared = attachments::declared(request).and_then(|bytes| usize::try_from(bytes).ok());
    let declared = declared.unwrap_or_default();
    let is_large = declared > body::BODY_LIMIT;
    if is_large {
        app.chat_limits().check_address(app.client_address(request))?;
    }
    if declared > ANONYMOUS_BODY {
        access::note_sender(app, request).await?;
    }
    // The operation is known only after the body is read.
    let limit = if is_large { RECORDING_LIMIT } else { body::BODY_LIMIT };
    let body = body::read(request, payload, limit, &**app.clock()).await?;
    let document = body::json(&body)?;
    let workflow = access::workflow_id(&document)?;
    if !is_large {
        app.chat_limits().check_address(app.client_address(request))?;
    }
    let access = ChatAccess::judge(app, request, workflow).await?;
    access.check_write(app, request)?;
    let members = document.as_object().ok_or_else(|| ApiError::new(ErrorCode::ChatWorkflowIdRequired))?;
    let ChatRequest { operation, metadata } = ChatRequest::parse(members)
        .map_err(|errors| ApiError::problems(ErrorCode::ChatInvalidRequest, errors))?;
    if body.len() > body::BODY_LIMIT && !matches!(operation, ChatOperation::Transcribe { .. }) {
        return Err(ApiError::new(ErrorCode::TooLarge));
    }
    // Malformed thread ids are not remembered.
    let thread = operation.thread_id().filter(|id| ThreadId::parse(id).is_ok());
    let session = access.session(thread);
    app.chat_limits().check_workflow(workflow)?;
    if let Some(session) = &session {
        app.chat_limits().check_session(session)?;
    }
    Ok(AdmittedRequest { access, body, operation, metadata, session })
}

async fn chat(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let AdmittedRequest { access, body, operation, metadata, session } =
        admit(&app, &request, payload).await?;
    let asked = AuthorizedRequest {
        app: &app,
        access: &access,
        request: &request,
        body: &body,
        session: session.as_deref(),
    };
    let links = Links::new(&app, &request);
    // The request's future is as large as its largest operation and is moved, so operations larger than a message are
    // boxed.
    match operation {
        ChatOperation::CreateThread { input } => turns::begin(asked, TurnInput::First(input), metadata).await,
        ChatOperation::AddUserMessage { thread_id, input } => {
            turns::begin(asked, TurnInput::More(thread_id, input), metadata).await
        }
        ChatOperation::RetryAfterItem { thread_id, item_id } => {
            turns::begin(asked, TurnInput::Again { thread_id, item_id }, metadata).await
        }
        ChatOperation::AddStructuredInput { thread_id, item_id, input } => {
            answers::submit(asked, &thread_id, &item_id, &input).await
        }
        ChatOperation::AddClientToolOutput { thread_id, result } => {
            answers::output(asked, &thread_id, result).await
        }
        ChatOperation::CustomAction(request) => Box::pin(actions::begin(asked, request, metadata)).await,
        ChatOperation::SyncCustomAction(request) => {
            json(Box::pin(actions::act(asked, request, metadata)).await?)
        }
        ChatOperation::CreateAttachment { name, size, mime_type } => {
            attachments::announce(&app, &access, &request, &name, &mime_type, size).await
        }
        ChatOperation::DeleteAttachment { attachment_id } => {
            attachments::delete(&app, &access, &attachment_id).await?;
            json(threads::Empty {})
        }
        ChatOperation::Transcribe { audio_base64, mime_type } => {
            json(dictation::transcribe(&app, &access, &request, &audio_base64, &mime_type).await?)
        }
        ChatOperation::GetThread { thread_id } => {
            json(threads::get(&app, &access, &links, &thread_id).await?)
        }
        ChatOperation::ListThreads(page) => json(threads::list(&app, &access, &page).await?),
        ChatOperation::ListItems { thread_id, page } => {
            json(threads::items(&app, &access, &links, &thread_id, &page).await?)
        }
        ChatOperation::UpdateThread { thread_id, title } => {
            json(threads::rename(&app, &access, &thread_id, &title).await?)
        }
        ChatOperation::DeleteThread { thread_id } => json(threads::delete(&app, &access, &thread_id).await?),
        ChatOperation::ItemFeedback { thread_id, item_ids, kind, comment } => {
            let comment = comment.as_deref();
            json(threads::feedback(&app, &access, &thread_id, &item_ids, kind, comment).await?)
        }
    }
}

fn json(answer: impl serde::Serialize) -> ApiResult<HttpResponse> {
    Ok(HttpResponse::Ok().json(answer))
}

/// The head of a chat stream response.
fn headers(stream: Uuid) -> HttpResponseBuilder {
    let mut head = events::headers();
    head.insert_header(("X-Chat-Stream-Id", stream.to_string()));
    head
}

fn dialect(app: &App, request: &HttpRequest) -> Dialect {
    match app.config().chat.dialect {
        config::Dialect::Interface => Dialect::Interface,
        config::Dialect::Chatkit => Dialect::Chatkit,
        config::Dialect::Auto => {
            let accept = request.headers().get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
            let asked = accept.is_some_and(|accept| {
                accept.split([',', ';']).any(|part| part.trim().eq_ignore_ascii_case("dialect=chatkit"))
            });
            if asked || request.headers().contains_key(FRAME_HEADER) {
                Dialect::Chatkit
            } else {
                Dialect::Interface
            }
        }
    }
}
