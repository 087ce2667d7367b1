//! Hosts below the apps domain. They belong to publishers, so they share nothing with the central host: no pages, no
//! sessions, no CORS.

mod alias_paths;
mod assets;
mod client;
mod cookie;
mod copies;
mod data;
mod error;
mod headers;
mod key;
mod login;
mod path;
mod runs;
mod served;
mod session;
mod visitor;

use std::sync::Arc;

use actix_web::dev::{HttpServiceFactory, RequestHead};
use actix_web::guard::fn_guard;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST};
use actix_web::middleware::from_fn;
use actix_web::{HttpRequest, HttpResponse, ResponseError, web};
use auth::host::RequestHost;

pub(super) use assets::Assets;
pub(super) use headers::{defaults as default_headers, set as set_headers};
pub(super) use runs::{FrozenBindings, OpenStates};
pub(super) use served::Aliases;

use super::App;

/// The byte-identical response for all aliases that are unknown, deleted or unpublished.
const NOT_FOUND: &str = include_str!("../../../pages/alias-not-found.html");

/// The policy for our own page, which loads nothing.
const NOTHING: &str =
    "default-src 'none'; worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Handles every request whose host is the apps domain or below it.
pub(super) fn scope(domain: &str) -> impl HttpServiceFactory + use<> {
    let domain: Arc<str> = domain.into();
    web::scope("")
        .guard(fn_guard(move |context| is_alias(context.head(), &domain)))
        .wrap(from_fn(headers::middleware))
        .configure(client::routes)
        .configure(runs::routes)
        .configure(assets::routes)
        .configure(login::routes)
        .configure(data::routes)
        .configure(alias_paths::unknown)
        .default_service(web::to(assets::asset))
}

/// Whether the host is the apps domain or below it. Requests without a readable host are refused earlier.
pub(super) fn is_alias(head: &RequestHead, domain: &str) -> bool {
    let host = head.headers.get(HOST).and_then(|host| host.to_str().ok());
    host.and_then(RequestHost::parse).is_some_and(|host| host.is_within(domain))
}

/// Answers an alias request whose target is not a path, which scopes do not receive; `None` for other hosts.
pub(super) async fn without_path(app: &App, request: &HttpRequest) -> Option<HttpResponse> {
    if !is_alias(request.head(), &app.config().apps.domain) {
        return None;
    }
    let known = visitor::served(app, request, false).await;
    let mut answer = match known.and_then(|_| assets::check_method(request)) {
        Ok(()) => page(),
        Err(error) => error.error_response(),
    };
    headers::set(answer.headers_mut(), app.is_asked_over_https(request));
    Some(answer)
}

fn page() -> HttpResponse {
    HttpResponse::NotFound()
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "private, no-store"))
        .insert_header((CONTENT_SECURITY_POLICY, NOTHING))
        .body(NOT_FOUND)
}
