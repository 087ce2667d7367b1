//! Whose browser it is: the cookie of a sign-in.
//!
//! The cookie says who the user is, not that they want what is asked: whatever changes something checks the origin too
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

/// Kept by the browser alone, and sent to this host alone.
const NAME: &str = "__Host-svc_session";

/// A user whose browser is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BrowserUser {
    /// Who.
    pub(super) user: Uuid,
    /// By which sign-in.
    pub(super) session: Uuid,
    /// Their mail address.
    pub(super) email: String,
    /// The whole record.
    pub(super) record: StoredUser,
    /// When they will have to sign in again, whatever they do.
    pub(super) ends_at: DateTime<Utc>,
}

/// The user signed in on the request's browser; `None` after an hour without a request and twelve hours in all.
pub(super) async fn signed_in(app: &App, request: &HttpRequest) -> ApiResult<Option<BrowserUser>> {
    read(app, request, true).await
}

/// The same of a request that is not the user's own, such as one that a page repeats: the hour continues to run.
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

/// What is kept of the request's cookie, whatever it is worth.
pub(super) fn digest(request: &HttpRequest) -> Option<Vec<u8>> {
    cookies::only(request, NAME).map(Token::digest_of)
}

/// The cookie of a new sign-in.
pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    host_cookie(NAME, secret.expose(), Duration::seconds(SESSION_LIFE.num_seconds()))
}

/// Takes the cookie away.
pub(super) fn no_cookie() -> Cookie<'static> {
    host_cookie(NAME, "", Duration::ZERO)
}

/// A cookie that goes nowhere but to this host, over https (or loopback), out of reach of scripts. `Lax`: it comes along
/// when a user follows a link to us, and with nothing that another site's page sends.
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
