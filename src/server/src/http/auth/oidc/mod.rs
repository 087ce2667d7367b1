//! Sign-in by the OpenID provider: redirect and return in the same browser.

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

/// The cookie that binds a provider sign-in to its browser. Concurrent sign-ins share it.
const BINDING: &str = "__Host-svc_oidc";
/// The path to which the provider returns browsers.
const CALLBACK: &str = "/api/auth/oidc/callback";

fn provider(app: &App) -> ApiResult<&Provider> {
    app.provider().ok_or_else(|| ApiError::new(ErrorCode::OidcOff))
}

/// The redirect URI, identical in both requests to the provider.
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

/// The stored digest of a browser's secret.
fn binding_digest(request: &HttpRequest) -> Option<Vec<u8>> {
    read_binding(request).map(|secret| Token::digest_of(&secret))
}
