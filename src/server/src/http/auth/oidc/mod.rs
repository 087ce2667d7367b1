//! Sign-in by the OpenID provider: there and back, in one browser.

mod callback;
mod failure;
mod start;

pub(super) use callback::callback;
pub(super) use start::start;

use actix_web::HttpRequest;
use actix_web::cookie::Cookie;
use actix_web::cookie::time::Duration;
use auth::oidc::ASKED_LIFE;
use auth::sign_in::Token;
use wire::ErrorCode;

use crate::http::error::{ApiError, ApiResult};
use crate::http::{App, cookies, session};
use crate::oidc::Provider;

/// What ties a way to the provider to the browser that takes it. Of several at once it is the same.
const BINDING: &str = "__Host-svc_oidc";
/// The path that the provider sends browsers back to.
const CALLBACK: &str = "/api/auth/oidc/callback";

fn provider(app: &App) -> ApiResult<&Provider> {
    app.provider().ok_or_else(|| ApiError::new(ErrorCode::OidcOff))
}

/// Where the provider sends browsers, the same on both ways.
fn redirect_uri(app: &App, request: &HttpRequest) -> ApiResult<String> {
    let base = app.link_base(request).ok_or_else(|| ApiError::new(ErrorCode::PublicBaseMissing))?;
    Ok(format!("{base}{CALLBACK}"))
}

fn read_binding(request: &HttpRequest) -> Option<String> {
    cookies::only(request, BINDING).map(str::to_owned)
}

fn binding_cookie(secret: &str) -> Cookie<'static> {
    session::host_cookie(BINDING, secret, Duration::seconds(ASKED_LIFE.num_seconds()))
}

/// What is kept of a browser's secret.
fn binding_digest(request: &HttpRequest) -> Option<Vec<u8>> {
    read_binding(request).map(|secret| Token::digest_of(&secret))
}
