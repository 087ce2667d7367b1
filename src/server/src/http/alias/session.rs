//! Members who are signed in to an app.
//!
//! The cookie is of this host alone, and not of the central host: neither opens anything at the other. Whether the user is
//! still a member, and still signed in on the central host, is read with each request.

use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use actix_web::http::header::{HeaderMap, HeaderValue, SET_COOKIE};
use actix_web::{HttpMessage, HttpRequest};
use auth::app_sign_in::SESSION_LIFE;
use auth::sign_in::Token;
use chrono::{DateTime, Utc};
use store::AppSessionUse;
use uuid::Uuid;
use wire::AppAccess;

use super::alias_paths::{ASSETS, AUTH, PREFIX, SESSION};
use super::error::AliasResult;
use super::served::ServedApp;
use crate::http::App;
use crate::http::cookies;
use crate::http::error::ApiError;
use crate::http::session::host_cookie;

/// Kept by the browser alone, and sent to the host of this app alone.
const NAME: &str = "__Host-svc_app";

/// A member of the app's workspace who is signed in to the app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Member {
    /// Who.
    pub(in crate::http) user: Uuid,
    /// By which session.
    pub(in crate::http) session: Uuid,
    /// How pages of the app call them: by the name that they gave, else by the beginning of their address.
    pub(in crate::http) display_name: String,
    /// When they will have to sign in again, whatever they do.
    pub(in crate::http) expires_at: DateTime<Utc>,
}

/// The cookie that takes the place of the request's.
struct NextCookie(Token);

/// The member who sends a request; `None` without a session.
///
/// # Errors
/// [`super::error::AliasError`] if the database does not answer.
pub(super) async fn member(
    app: &App,
    request: &HttpRequest,
    served: &ServedApp,
) -> AliasResult<Option<Member>> {
    let Some(digest) = digest(request) else { return Ok(None) };
    let shown = AppSessionUse { app: served.id, workspace: served.workspace, digest: &digest };
    let Some(session) = app.store().app_session(&shown).await? else { return Ok(None) };
    if session.is_due && may_rotate(request.path(), served.access) {
        let next = Token::fresh(app.random()).map_err(ApiError::from)?;
        // Of several requests at once, one brings the next cookie.
        if app.store().rotate_app_session(session.id, &digest, &next.digest()).await? {
            request.extensions_mut().insert(NextCookie(next));
        }
    }
    let local = session.email.split('@').next().unwrap_or_default().to_owned();
    Ok(Some(Member {
        user: session.user_id,
        session: session.id,
        display_name: session.name.unwrap_or(local),
        expires_at: session.expires_at,
    }))
}

/// Whether an answer may bring a cookie: no cache keeps it, and it brings none of its own.
fn may_rotate(path: &str, access: AppAccess) -> bool {
    if path.starts_with(AUTH) {
        return path == SESSION;
    }
    let is_of_service = path.starts_with(PREFIX) && !path.starts_with(ASSETS);
    access == AppAccess::Members || is_of_service
}

/// Adds the next cookie to the answer of a request that has one.
pub(super) fn set_next_cookie(request: &HttpRequest, headers: &mut HeaderMap) {
    let next = request.extensions_mut().remove::<NextCookie>();
    let next = next.and_then(|next| HeaderValue::from_str(&cookie(&next.0).to_string()).ok());
    if let Some(next) = next {
        headers.append(SET_COOKIE, next);
    }
}

/// What is kept of the request's cookie, whatever it is worth.
pub(super) fn digest(request: &HttpRequest) -> Option<Vec<u8>> {
    cookies::only(request, NAME).filter(|cookie| Token::has_form(cookie)).map(Token::digest_of)
}

/// The cookie of a session.
pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    host_cookie(NAME, secret.expose(), Duration::seconds(SESSION_LIFE.num_seconds()))
}

/// Takes the cookie away.
pub(super) fn no_cookie() -> Cookie<'static> {
    host_cookie(NAME, "", Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_answer_that_a_cache_keeps_brings_a_cookie() {
        for (path, public) in [
            ("/", false),
            ("/app.js", false),
            ("/__service/config", true),
            ("/__service/runs/x/events", true),
            ("/__service/assets/00/app.js", false),
            ("/__service/auth/session", true),
        ] {
            assert_eq!(may_rotate(path, AppAccess::Public), public, "{path}");
            assert!(may_rotate(path, AppAccess::Members), "{path}");
        }
        for path in ["/__service/auth/login", "/__service/auth/callback", "/__service/auth/logout"] {
            assert!(!may_rotate(path, AppAccess::Members), "{path}");
        }
    }
}
