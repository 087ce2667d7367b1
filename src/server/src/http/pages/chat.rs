//! The share page: `/chat/{workflow id}`.

use actix_web::http::StatusCode;
use actix_web::http::header::LOCATION;
use actix_web::web::Path;
use actix_web::{HttpRequest, HttpResponse};
use auth::scope::Scope;
use minijinja::context;
use store::WorkflowRef;
use uuid::Uuid;
use wire::{ErrorCode, PublicWorkflow};

use super::{html, sign_in};
use crate::http::error::{ApiError, ApiResult};
use crate::http::guard::{Anyone, PageCaller, WorkflowsRead};
use crate::http::{App, chat, session, workflows};

/// The chat's style sheets, in order.
pub(super) const STYLES: [&str; 12] = [
    "base.css",
    "chat.css",
    "chat/items.css",
    "chat/attachments.css",
    "chat/dictation.css",
    "chat/questions.css",
    "chat/history.css",
    "widget/frame.css",
    "widget/content.css",
    "widget/lists.css",
    "widget/controls.css",
    "widget/chart.css",
];

/// The page exchanges the sign-in cookie for an access token.
const BY_TOKEN: &str = "token";
/// The service requires no authentication.
const OPENLY: &str = "open";

/// Serves the page, or an explanation in plain words. If login is required, anonymous callers are first sent to
/// sign-in.
pub(super) async fn page(
    app: Anyone,
    caller: ApiResult<PageCaller<WorkflowsRead>>,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let (workflow, user) = match published(&app, &id, &request).await {
        Ok(found) => found,
        Err(error) if error.code() == ErrorCode::ChatLoginRequired => {
            let login = sign_in::login_address(request.uri().path());
            let mut answer = HttpResponse::SeeOther();
            return sign_in::private(answer.insert_header((LOCATION, login)).finish());
        }
        Err(error) => return closed(&error),
    };
    let record = serde_json::to_string(&workflow)
        .map_err(|error| ApiError::new(ErrorCode::Internal).with_cause(error))?;
    let answers = match caller {
        Ok(caller) => answers(&caller, &workflow.id).await?,
        Err(_) => None,
    };
    let PublicWorkflow { name, description, share_url, chat, .. } = workflow;
    let named = user.is_some() || answers == Some(BY_TOKEN);
    let config = &app.config().chat;
    let domain_key = config.domain_key.as_deref();
    let filling =
        context! { record, name, description, share_url, user, answers, domain_key, styles => STYLES };
    let mut page = html::page(StatusCode::OK, "chat.html", filling)?;
    let cdn = domain_key.map(|_| config.cdn_base_url.origin());
    match &cdn {
        Some(cdn) => html::allow_widget(&mut page, cdn),
        None => html::allow_images(&mut page),
    }
    if chat.dictation {
        html::allow_microphone(&mut page, cdn.as_deref());
    }
    if named { sign_in::private(page) } else { Ok(page) }
}

/// The page's access for answering questions from runs, if the caller may run the workflow.
async fn answers(caller: &PageCaller<WorkflowsRead>, workflow: &str) -> ApiResult<Option<&'static str>> {
    let id = WorkflowRef::Id(Uuid::parse_str(workflow).unwrap_or_default());
    let Some(workflow) = caller.store().workflow(&id, Uuid::nil()).await? else { return Ok(None) };
    let Some(workspace) = caller.store().workspace(workflow.workspace_id).await? else { return Ok(None) };
    let may = |scope| caller.may_in(scope, &workspace);
    let access = if caller.email.is_some() { BY_TOKEN } else { OPENLY };
    Ok((may(Scope::WorkflowsRead) && may(Scope::WorkflowsExecute)).then_some(access))
}

/// Returns the workflow, and the signed-in user if it requires login.
async fn published(
    app: &App,
    id: &str,
    request: &HttpRequest,
) -> ApiResult<(PublicWorkflow, Option<String>)> {
    let not_found = || ApiError::new(ErrorCode::WorkflowNotFound);
    let id = WorkflowRef::Id(Uuid::parse_str(id).map_err(|_| not_found())?);
    let workflow = app.store().workflow(&id, Uuid::nil()).await?.ok_or_else(not_found)?;
    let user = if workflow.require_login { session::signed_in(app, request).await? } else { None };
    chat::check_published(&workflow, user.is_some())?;
    let public = workflows::public_record(workflow, &app.public_base(request));
    Ok((public, user.map(|user| user.email)))
}

fn closed(error: &ApiError) -> ApiResult<HttpResponse> {
    let (title, text) = match error.code() {
        ErrorCode::WorkflowNotFound => (
            "Chat not found",
            "The address may be wrong, or the chat was removed. Ask the person who sent it to you for a new one.",
        ),
        ErrorCode::ChatNotPublished => (
            "This chat is not published",
            "It is not published at the moment. Ask the person who sent you the address.",
        ),
        _ => (
            "The chat is not available right now",
            "The service is not available. Nothing is lost; try again in a moment.",
        ),
    };
    html::closed(error, title, text, "../")
}
