//! The sign-in cookie, which identifies the browser's user.
//!
//! The cookie does not prove that the user intends the request. Every change therefore also checks the origin
//! ([`super::cors::is_foreign`]).

use std::borrow::Cow;

use actix_web::HttpRequest;
use actix_web::cookie::time::Duration;
use actix_web::cookie::{Cookie, SameSite};
use auth::sign_in::{SESSION_LIFE, Token};
use chrono::{DateTime, Utc};
use store::StoredUser;
use uuid::Uuid;

use super::error::ApiResult;
use super::{App, cookies};

/// A host-only cookie, not sent to other hosts.
const NAME: &str = "__Host-svc_session";

/// A user who is signed in on a browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrowserUser {
    /// The user's id.
    pub(super) user: Uuid,
    /// The sign-in session's id.
    pub(super) session: Uuid,
    /// The user's email address.
    pub(super) email: String,
    /// The full user record.
    pub(super) record: StoredUser,
    /// When the session ends, regardless of activity.
    pub(super) ends_at: DateTime<Utc>,
}

/// Returns the browser's signed-in user; `None` after one hour without requests or twelve hours in total.
pub(super) async fn signed_in(app: &App, request: &HttpRequest) -> ApiResult<Option<BrowserUser>> {
    read(app, request, true).await
}

/// Like [`signed_in`], for requests without user activity, such as polling by a page. Does not extend the hour.
pub(super) async fn still_signed_in(app: &App, request: &HttpRequest) -> ApiResult<Option<BrowserUser>> {
    read(app, request, false).await
}

async fn read(app: &App, request: &HttpRequest, counts: bool) -> ApiResult<Option<BrowserUser>> {
    let Some(digest) = digest(request) else { return Ok(None) };
    let found = app.store().browser_session(&digest, counts).await?;
    Ok(found.and_then(|session| {
        let (user, email) = (session.user.id, session.user.email.clone()?);
        let (record, ends_at) = (session.user, session.ends_at);
        Some(BrowserUser { user, session: session.id, email, record, ends_at })
    }))
}

/// The stored digest for the request's cookie, valid or not.
pub(super) fn digest(request: &HttpRequest) -> Option<Vec<u8>> {
    cookies::only(request, NAME).map(Token::digest_of)
}

/// The cookie for a new sign-in.
pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    host_cookie(NAME, secret.expose(), Duration::seconds(SESSION_LIFE.num_seconds()))
}

/// Removes the cookie.
pub(super) fn no_cookie() -> Cookie<'static> {
    host_cookie(NAME, "", Duration::ZERO)
}

/// A cookie for this host only, sent over https (or loopback) and hidden from scripts. `Lax`: sent when a user follows
/// a link to us, but not with requests from other sites' pages.
pub(super) fn host_cookie(
    name: impl Into<Cow<'static, str>>,
    value: &str,
    kept: Duration,
) -> Cookie<'static> {
    Cookie::build(name, value.to_owned())
        .path("/")
        .http_only(true)
        .secure(true)
        .same_site(SameSite::Lax)
        .max_age(kept)
        .finish()
}
