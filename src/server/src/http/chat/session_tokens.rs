//! Short-lived session tokens with which a page chats with one workflow.

use actix_web::http::{StatusCode, header};
use actix_web::web::{Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::chat_session::{ChatSessions, NewChatSession};
use chrono::{SubsecRound, TimeDelta};
use serde_json::{Map, Value};
use store::{StoredWorkflow, WorkflowRef};
use url::Url;
use uuid::Uuid;
use wire::{ChatSessionAnswer, CreateChatSession, ErrorCode, FieldError};

use super::access;
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::{Caller, ChatSession, RouteScope, WorkflowsReadExecute};
use crate::http::query::Params;
use crate::http::{body, fields, time};

/// A prefix reserved for subjects of our own callers.
const OWN: &str = "callboard:";

/// `POST /api/chat/session`, for servers with a service token. The checks run in this order: token, scope, key, body,
/// workflow, workspace. Here the interface requires 401 for a missing scope.
pub(super) async fn create(
    caller: Result<Caller<ChatSession>, ApiError>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let caller = caller.map_err(|error| match error.code() {
        ErrorCode::MissingScope => error.with_status(StatusCode::UNAUTHORIZED),
        _ => error,
    })?;
    let sessions = sessions(&caller)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let document = body::json(&bytes)?;
    let workflow = access::workflow_id(&document)?;
    let empty = Map::new();
    let wanted = Params::from_request(&request).and(read(document.as_object().unwrap_or(&empty)))?;
    let found = caller.store().workflow(&WorkflowRef::Id(workflow), Uuid::nil()).await?;
    let workflow = found.ok_or_else(|| ApiError::new(ErrorCode::WorkflowNotFound))?;
    caller.enter_workspace_of(workflow.workspace_id).await?;
    let named = wanted.user.is_some();
    let subject = match wanted.user {
        Some(user) => user,
        None => caller.app().new_id()?.simple().to_string(),
    };
    issue(&caller, sessions, &workflow, Subject { subject, named, origin: wanted.origin })
}

/// `POST /api/workflows/{ref}/chat/session`, for our own pages: the caller is the subject.
pub(super) async fn create_own(
    caller: Caller<WorkflowsReadExecute>,
    name: Path<String>,
    request: HttpRequest,
    payload: Payload,
) -> ApiResult<HttpResponse> {
    let sessions = sessions(&caller)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**caller.app().clock()).await?;
    let workflow = caller.workflow(&name).await?;
    Params::from_request(&request).and(fields::nothing(&body::object_or_nothing(&request, &bytes)?))?;
    let (subject, named) = match caller.name() {
        Some(name) => (format!("{OWN}{name}"), true),
        None => (caller.app().new_id()?.simple().to_string(), false),
    };
    issue(&caller, sessions, &workflow, Subject { subject, named, origin: None })
}

struct Subject {
    subject: String,
    named: bool,
    origin: Option<String>,
}

fn sessions<S>(caller: &Caller<S>) -> ApiResult<&ChatSessions> {
    let sessions = caller.app().tokens().chat.as_ref();
    sessions.ok_or_else(|| ApiError::new(ErrorCode::ChatSigningKeyMissing).with_cause("no signing key"))
}

fn read(members: &Map<String, Value>) -> Result<CreateChatSession, Vec<FieldError>> {
    let mut fields = Fields::new(members);
    let workflow_id = fields.text("workflow_id").unwrap_or_default().to_owned();
    let user = fields.line("user", 1, 200);
    if user.as_deref().is_some_and(|user| user.starts_with(OWN)) {
        fields.note(FieldError::new("/user", "reserved", format!("must not begin with {OWN}")));
    }
    let origin = fields.line("origin", 1, 255).map(|text| normalised_origin(&text));
    if origin == Some(None) {
        let expected =
            "must be an origin: scheme, host and an optional port, such as https://www.example.com";
        fields.note(FieldError::new("/origin", "format", expected));
    }
    let origin = origin.flatten();
    let problems = fields.finish();
    if problems.is_empty() { Ok(CreateChatSession { workflow_id, user, origin }) } else { Err(problems) }
}

/// Converts an origin to the form that browsers write: lower case, without default port or trailing slash.
fn normalised_origin(text: &str) -> Option<String> {
    let url = Url::parse(text).ok()?;
    let bare = matches!(url.scheme(), "http" | "https")
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none()
        && !text.contains(['@', '\\', '*']);
    bare.then(|| url.origin().ascii_serialization())
}

fn issue<S: RouteScope>(
    caller: &Caller<S>,
    sessions: &ChatSessions,
    workflow: &StoredWorkflow,
    whose: Subject,
) -> ApiResult<HttpResponse> {
    if workflow.archived_at.is_some() {
        return Err(ApiError::new(ErrorCode::WorkflowNotFound));
    }
    let app = caller.app();
    let now = app.clock().now();
    let lifetime = TimeDelta::from_std(app.config().chat.token_ttl).unwrap_or(TimeDelta::MAX);
    let session = NewChatSession {
        subject: whose.subject,
        named: whose.named,
        workflow: workflow.id,
        workspace: workflow.workspace_id,
        origin: whose.origin,
    };
    let secret = sessions.issue(&session, app.new_id()?, now, lifetime);
    // Token times are whole seconds.
    let ends = (now + lifetime).trunc_subsecs(0);
    let client_secret = secret.map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let answer = ChatSessionAnswer { client_secret, expires_at: time(ends) };
    Ok(HttpResponse::Ok().insert_header((header::CACHE_CONTROL, "no-store")).json(answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_normalized_to_the_form_of_browsers() {
        for (text, expected) in [
            ("https://www.example.com", "https://www.example.com"),
            ("HTTPS://WWW.Example.com/", "https://www.example.com"),
            ("https://www.example.com:443", "https://www.example.com"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("https://b\u{fc}cher.example", "https://xn--bcher-kva.example"),
        ] {
            assert_eq!(normalised_origin(text).as_deref(), Some(expected), "{text}");
        }
        for text in [
            "null",
            "*",
            "www.example.com",
            "ftp://example.com",
            "file:///",
            "https://example.com/chat",
            "https://example.com?x",
            "https://example.com#x",
            "https://a@example.com",
            "https://*.example.com",
            "https:\\\\example.com",
            "javascript:alert(1)",
        ] {
            assert_eq!(normalised_origin(text), None, "{text}");
        }
    }
}
