//! Sign-in to an app: redirect to the central host, return with a code, sign-out. App pages see no secrets.

mod binding;
mod callback;
mod failure;
mod log_out;
mod start;
mod who;

use actix_web::HttpRequest;
use actix_web::http::header::REFERRER_POLICY;
use actix_web::middleware::DefaultHeaders;
use actix_web::web::{self, ServiceConfig};
use wire::ErrorCode;

use super::alias_paths::{LOG_IN, LOG_OUT, SESSION, SIGNED_IN, resource};
use super::error::AliasResult;
use super::visitor::Visitor;

pub(super) fn routes(config: &mut ServiceConfig) {
    // Sign-in URLs contain a code or a state.
    let quiet = || DefaultHeaders::new().add((REFERRER_POLICY, "no-referrer"));
    config
        .service(resource(LOG_IN, "GET").route(web::get().to(start::start)).wrap(quiet()))
        .service(resource(SIGNED_IN, "GET").route(web::get().to(callback::callback)).wrap(quiet()))
        .service(resource(LOG_OUT, "POST").route(web::post().to(log_out::log_out)).wrap(quiet()))
        .service(resource(SESSION, "GET").route(web::get().to(who::session)).wrap(quiet()));
}

/// The central host's base URL, if browsers can keep cookies for both hosts.
fn central_base<'a>(visitor: &'a Visitor, request: &HttpRequest) -> AliasResult<&'a str> {
    let base = visitor.config().http.public_base_url.as_ref().ok_or(ErrorCode::LoginNotConfigured)?;
    let is_secure = visitor.is_asked_over_https(request) || visitor.is_local();
    if !is_secure {
        return Err(ErrorCode::AppTlsRequired.into());
    }
    Ok(base.as_str())
}
