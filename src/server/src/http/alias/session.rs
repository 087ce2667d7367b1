//! Members who are signed in to an app.
//!
//! The cookie belongs to the app's host; it is useless on the central host, and vice versa. Each request re-checks that
//! the user is still a member and still signed in on the central host.

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

/// A host-only cookie, sent only to this app's host.
const NAME: &str = "__Host-svc_app";

/// A signed-in member of the app's workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::http) struct Member {
    /// The user's id.
    pub(in crate::http) user: Uuid,
    /// The session's id.
    pub(in crate::http) session: Uuid,
    /// The name that app pages show: the user's own name, else the local part of their email address.
    pub(in crate::http) display_name: String,
    /// When the session ends, regardless of activity.
    pub(in crate::http) expires_at: DateTime<Utc>,
}

/// The cookie that replaces the request's.
struct NextCookie(Token);

/// Returns the member who sends a request; `None` without a session.
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
        // Of several concurrent requests, one sets the next cookie.
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

/// Whether a response may set a new cookie: it must not be cacheable and must not set its own session cookie.
fn may_rotate(path: &str, access: AppAccess) -> bool {
    if path.starts_with(AUTH) {
        return path == SESSION;
    }
    let is_of_service = path.starts_with(PREFIX) && !path.starts_with(ASSETS);
    access == AppAccess::Members || is_of_service
}

/// Adds the rotated cookie, if any, to the response.
pub(super) fn set_next_cookie(request: &HttpRequest, headers: &mut HeaderMap) {
    let next = request.extensions_mut().remove::<NextCookie>();
    let next = next.and_then(|next| HeaderValue::from_str(&cookie(&next.0).to_string()).ok());
    if let Some(next) = next {
        headers.append(SET_COOKIE, next);
    }
}

/// The stored digest for the request's cookie, valid or not.
pub(super) fn digest(request: &HttpRequest) -> Option<Vec<u8>> {
    cookies::only(request, NAME).filter(|cookie| Token::has_form(cookie)).map(Token::digest_of)
}

/// The session cookie.
pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    host_cookie(NAME, secret.expose(), Duration::seconds(SESSION_LIFE.num_seconds()))
}

/// Removes the cookie.
pub(super) fn no_cookie() -> Cookie<'static> {
    host_cookie(NAME, "", Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cacheable_responses_set_no_cookie() {
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
