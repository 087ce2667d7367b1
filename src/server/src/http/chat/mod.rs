//! The chat: one address for every request, and its streams.

mod access;
mod cookie;
mod idempotency;
mod streams;

use actix_web::http::header;
use actix_web::web::{self, Data, Payload, ServiceConfig};
use actix_web::{HttpRequest, HttpResponse, HttpResponseBuilder};
use actors::chat::{NewTurn, Owner, Target};
use kernel::ThreadId;
use uuid::Uuid;
use wire::ErrorCode;
use wire::chat::{ChatOperation, ChatRequest, Dialect, UserMessageInput};

use super::error::{ApiError, ApiResult};
use super::idempotency::REPLAYED;
use super::{App, body, events, resource};
use access::Access;

/// Sent by the hosted widget with each of its requests.
const FRAME_HEADER: &str = "chatkit-frame-instance-id";

pub(super) fn routes(config: &mut ServiceConfig) {
    config
        .service(resource("/api/chat", "POST").route(web::post().to(chat)))
        .service(resource("/api/chat/streams/{id}", "GET").route(web::get().to(streams::read)))
        .service(resource("/api/chat/streams/{id}/stop", "POST").route(web::post().to(streams::stop)));
}

/// JSON, then `workflow_id`, then access, then the request itself: in this order, whatever else is wrong.
async fn chat(app: Data<App>, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let document = body::json(&bytes)?;
    let workflow = access::workflow_id(&document)?;
    let access = Access::judge(&app, &request, workflow).await?;
    access.check_write(&app, &request)?;
    let members = document.as_object().ok_or_else(|| ApiError::new(ErrorCode::ChatWorkflowIdRequired))?;
    let typed = ChatRequest::parse(members)
        .map_err(|errors| ApiError::problems(ErrorCode::ChatInvalidRequest, errors))?;
    let mut key = idempotency::key(&request, &access, &bytes)?;
    let (target, input, visitor) = target(&app, &access, typed.operation).await?;
    let mut retry_gets_cookie = false;
    if let (Some(key), Some(visitor)) = (&mut key, &visitor) {
        // The cookie goes out with the answer's head, so a retry after that brings it along.
        key.also = Some(idempotency::scope_of(&access, visitor));
        retry_gets_cookie = idempotency::is_secret(&key.key);
    }
    let version = access.version()?;
    let begun = app
        .chat()
        .begin(NewTurn {
            workspace: access.workspace(),
            workflow,
            version,
            target,
            input,
            metadata: typed.metadata,
            dialect: dialect(&app, &request),
            idempotency: key,
        })
        .await?;
    let mut response = headers(begun.reader.stream());
    let mut visitor = visitor;
    if begun.replayed {
        response.insert_header(REPLAYED);
        visitor =
            if retry_gets_cookie { idempotency::first_visitor(&app, begun.thread).await? } else { None };
    }
    if let Some(visitor) = visitor {
        response.cookie(cookie::make(&app, &visitor, &request));
    }
    Ok(response.streaming(events::body(begun.reader, &app)))
}

/// The head of a chat stream's answer.
fn headers(stream: Uuid) -> HttpResponseBuilder {
    let mut head = events::headers();
    head.insert_header(("X-Chat-Stream-Id", stream.to_string()));
    head
}

/// Where the message goes, and the visitor whose cookie is to be set.
async fn target(
    app: &App,
    access: &Access,
    operation: ChatOperation,
) -> ApiResult<(Target, UserMessageInput, Option<auth::visitor::Visitor>)> {
    let (thread, input) = match operation {
        ChatOperation::CreateThread { input } => (None, input),
        ChatOperation::AddUserMessage { thread_id, input } => (Some(thread_id), input),
    };
    let thread = match thread {
        Some(text) => {
            let id = ThreadId::parse(&text).map_err(|_| ApiError::new(ErrorCode::ThreadNotFound))?;
            access.thread(app, id).await?;
            Some(id)
        }
        None => None,
    };
    // Nothing can have been uploaded yet.
    if !input.attachments.is_empty() {
        return Err(ApiError::new(ErrorCode::AttachmentNotFound));
    }
    if let Some(id) = thread {
        return Ok((Target::Thread(id), input, None));
    }
    let known = access.visitor().cloned();
    let fresh = match known {
        Some(_) => None,
        None => Some(app.visitors().fresh(app.random())?),
    };
    let owner = known.as_ref().or(fresh.as_ref()).map(|visitor| visitor.id().to_owned());
    Ok((Target::NewThread(Owner { kind: "visitor", id: owner }), input, fresh))
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
