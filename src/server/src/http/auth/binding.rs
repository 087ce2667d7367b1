//! Binds a sign-in to the browser that requested it.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use actix_web::http::header;
use auth::sign_in::{CHALLENGE_LIFE, Token};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, body, cookies, cors, session};

const NAME: &str = "__Host-svc_chal";
/// Identifies a browser across all its sign-ins. It grants nothing.
const BROWSER: &str = "__Host-svc_browser";
/// The maximum cookie lifetime in browsers.
const BROWSER_KEPT: Duration = Duration::days(400);

/// The secret that the browser received when it requested the sign-in; ignored for requests from another origin's page.
pub(super) fn read(app: &App, request: &HttpRequest) -> Option<String> {
    if cors::is_not_ours(app, request) { None } else { of_navigation(request) }
}

/// Like [`read`], for a navigation that changes nothing: links in web mail are opened by a page on another site.
pub(super) fn of_navigation(request: &HttpRequest) -> Option<String> {
    cookies::only(request, NAME).map(str::to_owned)
}

pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    session::host_cookie(NAME, secret.expose(), Duration::seconds(CHALLENGE_LIFE.num_seconds()))
}

pub(super) fn no_cookie() -> Cookie<'static> {
    session::host_cookie(NAME, "", Duration::ZERO)
}

/// Identifies a browser that requests sign-in mail. Requests by others then neither displace its sign-in nor count
/// against it.
pub(in crate::http) struct Browser {
    secret: String,
    /// Whether the request presented the cookie.
    pub(in crate::http) known: bool,
}

impl Browser {
    /// Returns the browser of the request, or a new one.
    pub(in crate::http) fn from_request(app: &App, request: &HttpRequest) -> ApiResult<Self> {
        match cookies::only(request, BROWSER).filter(|secret| Token::has_form(secret)) {
            Some(secret) => Ok(Self { secret: secret.to_owned(), known: true }),
            None => Ok(Self { secret: Token::fresh(app.random())?.expose().to_owned(), known: false }),
        }
    }

    pub(super) fn digest(&self) -> Vec<u8> {
        Token::digest_of(&self.secret)
    }

    pub(in crate::http) fn cookie(&self) -> Cookie<'static> {
        session::host_cookie(BROWSER, &self.secret, BROWSER_KEPT)
    }
}

/// Refuses pages that are neither ours nor listed: they cannot sign a user in or out.
pub(super) fn check_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if cors::is_foreign(app, request) { Err(ApiError::new(ErrorCode::OriginMismatch)) } else { Ok(()) }
}

/// Refuses pages other than ours, for requests that a cookie alone authorizes, that grant rights or that change an
/// account.
pub(super) fn check_own_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if cors::is_not_ours(app, request) { Err(ApiError::new(ErrorCode::OriginMismatch)) } else { Ok(()) }
}

/// Checks that sign-in by mail is enabled.
pub(super) fn check_mail(app: &App) -> ApiResult<()> {
    if app.config().offers_mail_sign_in() { Ok(()) } else { Err(ApiError::new(ErrorCode::EmailSignInOff)) }
}

/// Refuses requests not sent by our own page: browsers send the page's origin with every request that changes data.
pub(super) fn check_own_page(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if is_page(app, request) { Ok(()) } else { Err(ApiError::new(ErrorCode::OriginMismatch)) }
}

/// Whether our own page sent the request.
pub(super) fn is_page(app: &App, request: &HttpRequest) -> bool {
    request.headers().contains_key(header::ORIGIN) && !cors::is_not_ours(app, request)
}

/// Refuses requests unless the browser confirms that our own page sent them.
pub(super) fn check_page(app: &App, request: &HttpRequest) -> ApiResult<()> {
    let mut sites = request.headers().get_all("sec-fetch-site");
    let is_own = sites.next().is_some_and(|site| site.as_bytes() == b"same-origin") && sites.next().is_none();
    let names_none = !request.headers().contains_key(header::ORIGIN);
    if is_page(app, request) || (names_none && is_own) {
        Ok(())
    } else {
        Err(ApiError::new(ErrorCode::OriginMismatch))
    }
}

/// Requires JSON, the one content type that a form on another site cannot send.
pub(super) fn check_type(request: &HttpRequest) -> ApiResult<()> {
    if request.headers().contains_key(header::CONTENT_TYPE) && !body::is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    Ok(())
}
