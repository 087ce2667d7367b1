//! What ties a sign-in to the browser that asked for it.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use actix_web::http::header;
use auth::sign_in::{CHALLENGE_LIFE, Token};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, body, cookies, cors, session};

const NAME: &str = "__Host-svc_chal";
/// Tells the requests of one browser from those of others, over all of its sign-ins. It grants nothing.
const BROWSER: &str = "__Host-svc_browser";
/// As long as browsers keep a cookie.
const BROWSER_KEPT: Duration = Duration::days(400);

/// What the browser was given when it asked. On behalf of another origin's page it counts for nothing.
pub(super) fn read(app: &App, request: &HttpRequest) -> Option<String> {
    if cors::is_not_ours(app, request) { None } else { of_navigation(request) }
}

/// The same of a navigation that changes nothing: a link in web mail is opened by a page of another site.
pub(super) fn of_navigation(request: &HttpRequest) -> Option<String> {
    cookies::only(request, NAME).map(str::to_owned)
}

pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    session::host_cookie(NAME, secret.expose(), Duration::seconds(CHALLENGE_LIFE.num_seconds()))
}

pub(super) fn no_cookie() -> Cookie<'static> {
    session::host_cookie(NAME, "", Duration::ZERO)
}

/// What a browser is recognised by when it asks for mail: what others ask for then neither takes its place nor counts
/// against it.
pub(in crate::http) struct Browser {
    secret: String,
    /// The request showed it.
    pub(in crate::http) known: bool,
}

impl Browser {
    /// The one that the request shows, or a new one.
    pub(in crate::http) fn of(app: &App, request: &HttpRequest) -> ApiResult<Self> {
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

/// No page that is neither ours nor listed signs a person in or out.
pub(super) fn check_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if cors::is_foreign(app, request) { Err(ApiError::new(ErrorCode::OriginMismatch)) } else { Ok(()) }
}

/// What a cookie alone allows, and what hands out rights or changes an account, is for our own pages.
pub(super) fn check_own_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if cors::is_not_ours(app, request) { Err(ApiError::new(ErrorCode::OriginMismatch)) } else { Ok(()) }
}

/// Whether anybody signs in by mail here.
pub(super) fn check_mail(app: &App) -> ApiResult<()> {
    if app.config().offers_mail_sign_in() { Ok(()) } else { Err(ApiError::new(ErrorCode::EmailSignInOff)) }
}

/// Refuses a request that no page of ours has sent: browsers send the origin of a page with each request that changes something.
pub(super) fn check_own_page(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if is_page(app, request) { Ok(()) } else { Err(ApiError::new(ErrorCode::OriginMismatch)) }
}

/// Whether a page of ours is asking.
pub(super) fn is_page(app: &App, request: &HttpRequest) -> bool {
    request.headers().contains_key(header::ORIGIN) && !cors::is_not_ours(app, request)
}

/// Refuses what no page of ours has sent, by the word of a browser.
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

/// A form of another site can send anything but JSON.
pub(super) fn check_type(request: &HttpRequest) -> ApiResult<()> {
    if request.headers().contains_key(header::CONTENT_TYPE) && !body::is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    Ok(())
}
