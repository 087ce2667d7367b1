//! Shows the signed-in user and their sessions; signs out.

use actix_web::web::{Json, Path, Payload};
use actix_web::{HttpRequest, HttpResponse};
use auth::sign_in::Token;
use control::sign_in;
use store::{StoredSession, StoredUser};
use uuid::Uuid;
use wire::{ErrorCode, Me, SessionRecord, WorkspaceRole};

use super::{answer, binding, caller};
use crate::http::error::{ApiError, ApiResult};
use crate::http::fields::Fields;
use crate::http::guard::Anyone;
use crate::http::query::{self, Params};
use crate::http::{App, body, cors, session, time};

/// Maximum sessions listed.
const MAX_SESSIONS: i64 = 200;

pub(super) async fn me(app: Anyone, request: HttpRequest) -> ApiResult<Json<Me>> {
    let caller = caller::caller(&app, &request).await?;
    let (user, current) = caller.ok_or_else(|| ApiError::new(ErrorCode::MissingToken))?;
    query::none(&request)?;
    // With a cookie, a listed page learns only the user's identity.
    let sessions = if caller::shows_token(&request) || !cors::is_not_ours(&app, &request) {
        app.store().sessions_of(user.id, MAX_SESSIONS).await?
    } else {
        Vec::new()
    };
    let sessions = sessions.into_iter().map(|session| record(session, current)).collect();
    let workspaces = app.store().memberships(user.id).await?;
    let role = |place: store::Membership| WorkspaceRole {
        id: place.workspace_id.to_string(),
        slug: place.slug,
        role: place.role,
    };
    let workspaces = workspaces.into_iter().map(role).collect();
    Ok(Json(Me { user: answer::record(user), workspaces, sessions }))
}

fn record(session: StoredSession, current: Uuid) -> SessionRecord {
    SessionRecord {
        id: session.id.to_string(),
        kind: if session.is_browser() { "browser" } else { "terminal" }.to_owned(),
        current: session.id == current,
        created_at: time(session.created_at),
        last_used_at: time(session.last_used_at),
        expires_at: time(session.expires_at),
        user_agent: session.user_agent,
    }
}

/// Ends one of the caller's sessions. Responds with 204, even if it has already ended.
pub(super) async fn end_session(
    app: Anyone,
    id: Path<String>,
    request: HttpRequest,
) -> ApiResult<HttpResponse> {
    let not_found = || ApiError::new(ErrorCode::SessionNotFound);
    let (user, current) = changing_caller(&app, &request).await?;
    let id = Uuid::parse_str(&id).map_err(|_| not_found())?;
    query::none(&request)?;
    let client = answer::client(&app, &request);
    let found = app.store().change(async |changes| sign_in::end(changes, &client, user.id, id).await).await?;
    if !found {
        return Err(not_found());
    }
    Ok(ended(&app, &request, id == current))
}

/// Ends all sessions of the caller, including the current one. Responds with 204.
pub(super) async fn end_sessions(app: Anyone, request: HttpRequest) -> ApiResult<HttpResponse> {
    let (user, _) = changing_caller(&app, &request).await?;
    query::none(&request)?;
    let client = answer::client(&app, &request);
    app.store().change(async |changes| sign_in::end_all(changes, &client, user.id).await).await?;
    Ok(ended(&app, &request, true))
}

/// Responds with 204 and removes the cookie of an ended current session. A listed page cannot know which session the
/// browser's cookie belongs to, so it keeps the cookie.
fn ended(app: &App, request: &HttpRequest, current: bool) -> HttpResponse {
    let mut answer = HttpResponse::NoContent();
    if current && !cors::is_not_ours(app, request) {
        answer.cookie(session::no_cookie());
    }
    answer.finish()
}

/// Authenticates the caller by an access token, or by the cookie if our own page asks.
async fn changing_caller(app: &App, request: &HttpRequest) -> ApiResult<(StoredUser, Uuid)> {
    let by_token = caller::shows_token(request);
    if by_token {
        binding::check_origin(app, request)?;
    } else {
        binding::check_own_origin(app, request)?;
    }
    let caller = caller::caller(app, request).await?;
    let caller = caller.ok_or_else(|| ApiError::new(ErrorCode::MissingToken))?;
    if !by_token {
        binding::check_own_page(app, request)?;
    }
    Ok(caller)
}

/// Authenticates the caller who signs out: by an access token, or by the cookie if our own page asks. Another page may
/// end a session with its refresh token, but not the session of the browser's cookie.
async fn ending_caller(
    app: &App,
    request: &HttpRequest,
    has_refresh_token: bool,
) -> ApiResult<Option<(StoredUser, Uuid)>> {
    if caller::shows_token(request) || binding::is_page(app, request) {
        return caller::caller(app, request).await;
    }
    if has_refresh_token {
        return Ok(None);
    }
    binding::check_own_origin(app, request)?;
    match caller::caller(app, request).await? {
        Some(_) => Err(ApiError::new(ErrorCode::OriginMismatch)),
        None => Ok(None),
    }
}

/// Ends the session of the access token, the cookie, or the refresh token in the body. Succeeds for callers who are not
/// signed in.
pub(super) async fn log_out(app: Anyone, request: HttpRequest, payload: Payload) -> ApiResult<HttpResponse> {
    binding::check_origin(&app, &request)?;
    binding::check_type(&request)?;
    let bytes = body::read(&request, payload, body::BODY_LIMIT, &**app.clock()).await?;
    let members = body::object_or_nothing(&request, &bytes)?;
    let mut fields = Fields::new(&members);
    let refresh = fields.text("refresh_token").map(Token::digest_of);
    let problems = fields.finish();
    Params::from_request(&request).and(if problems.is_empty() { Ok(()) } else { Err(problems) })?;
    let caller = ending_caller(&app, &request, refresh.is_some()).await?;
    let (client, own) = (answer::client(&app, &request), caller.map(|(_, session)| session));
    app.store()
        .change(async |changes| sign_in::sign_out(changes, &client, own, refresh.as_deref()).await)
        .await?;
    let mut answer = HttpResponse::NoContent();
    // Other callers do not remove the browser's cookie.
    if binding::is_page(&app, &request) {
        answer.cookie(session::no_cookie());
    }
    Ok(answer.finish())
}
