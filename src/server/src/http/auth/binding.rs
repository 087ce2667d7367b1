//! What ties a sign-in to the browser that asked for it.

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use actix_web::http::header;
use auth::sign_in::{CHALLENGE_LIFE, Token};
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, body, cors, session};

const NAME: &str = "__Host-svc_chal";

/// What the browser was given when it asked.
pub(super) fn read(request: &HttpRequest) -> Option<String> {
    session::only(request, NAME)
}

pub(super) fn cookie(secret: &Token) -> Cookie<'static> {
    session::host_cookie(NAME, secret.expose(), Duration::seconds(CHALLENGE_LIFE.num_seconds()))
}

pub(super) fn no_cookie() -> Cookie<'static> {
    session::host_cookie(NAME, "", Duration::ZERO)
}

/// No page of another origin signs anybody in or out.
pub(super) fn check_origin(app: &App, request: &HttpRequest) -> ApiResult<()> {
    if cors::is_foreign(app, request) { Err(ApiError::new(ErrorCode::OriginMismatch)) } else { Ok(()) }
}

/// Whether anybody signs in by mail here.
pub(super) fn check_mail(app: &App) -> ApiResult<()> {
    if app.config().offers_mail_sign_in() { Ok(()) } else { Err(ApiError::new(ErrorCode::EmailSignInOff)) }
}

/// Whether a page that may do so is asking.
pub(super) fn is_page(app: &App, request: &HttpRequest) -> bool {
    request.headers().contains_key(header::ORIGIN) && !cors::is_foreign(app, request)
}

/// A form of another site can send anything but JSON.
pub(super) fn check_type(request: &HttpRequest) -> ApiResult<()> {
    if request.headers().contains_key(header::CONTENT_TYPE) && !body::is_json(request) {
        return Err(ApiError::new(ErrorCode::UnsupportedMediaType));
    }
    Ok(())
}

/// Browsers keep `Secure` cookies of https, and of loopback.
pub(in crate::http) fn keeps_cookies(app: &App, request: &HttpRequest) -> bool {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    app.public_base(request).starts_with("https://") || host.is_none_or(App::is_loopback_name)
}
