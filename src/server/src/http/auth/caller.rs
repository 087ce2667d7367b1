//! Who asks: by an access token, or by a browser's cookie.

use actix_web::HttpRequest;
use actix_web::http::header;
use store::StoredUser;
use uuid::Uuid;
use wire::ErrorCode;

use super::access_token;
use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, session};

/// Somebody who is signed in.
pub(super) struct SignedInCaller {
    pub(super) user: StoredUser,
    pub(super) session: Uuid,
}

/// Whoever asks. An access token is judged alone: with a bad one, the cookie beside it counts for nothing.
pub(super) async fn caller(app: &App, request: &HttpRequest) -> ApiResult<Option<SignedInCaller>> {
    let Some(value) = request.headers().get(header::AUTHORIZATION) else {
        return by_cookie(app, request).await;
    };
    let text = value.to_str().unwrap_or_default();
    let token = text.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let session = token.and_then(|(_, token)| access_token::session_of(app, token.trim()));
    let session = session.ok_or_else(|| ApiError::new(ErrorCode::InvalidToken))?;
    let user = app.store().live_session(session).await?;
    let user = user.ok_or_else(|| ApiError::new(ErrorCode::InvalidToken))?;
    Ok(Some(SignedInCaller { user, session }))
}

async fn by_cookie(app: &App, request: &HttpRequest) -> ApiResult<Option<SignedInCaller>> {
    let found = session::signed_in(app, request).await?;
    Ok(found.map(|found| SignedInCaller { user: found.record, session: found.session }))
}

/// Notes a code that was not good.
pub(super) async fn failed(_app: &App, _request: &HttpRequest, _email: &str) -> ApiResult<()> {
    Ok(())
}
