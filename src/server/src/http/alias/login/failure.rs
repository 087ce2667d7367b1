//! The page for a failed sign-in, because a user sees it in a browser.

use actix_web::http::header::{ACCEPT, CONTENT_SECURITY_POLICY, CONTENT_TYPE, RETRY_AFTER};
use actix_web::{HttpRequest, HttpResponse, ResponseError};
use minijinja::{Environment, context};
use wire::ErrorCode;

use crate::http::alias::NOTHING;
use crate::http::error::ApiError;
use crate::http::request_id;

const PAGE: &str = include_str!("../../../../pages/alias-sign-in-failed.html");

/// Whether a browser, not a script, opens the URL.
pub(super) fn wants_page(request: &HttpRequest) -> bool {
    let accepted = request.headers().get(ACCEPT).and_then(|value| value.to_str().ok());
    accepted.is_some_and(|accepted| accepted.contains("text/html"))
}

/// A page with the reason in fixed words and a link to start again.
pub(super) fn page(error: &ApiError) -> HttpResponse {
    let answer = error.error_response();
    let id = if answer.status().is_server_error() { request_id::current() } else { None };
    let filling = context! { text => text(error.code()), code => error.code().as_str(), request_id => id };
    let Ok(html) = Environment::new().render_named_str("alias-sign-in-failed.html", PAGE, filling) else {
        return answer;
    };
    let mut page = HttpResponse::build(answer.status());
    page.insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CONTENT_SECURITY_POLICY, NOTHING));
    if let Some(after) = answer.headers().get(RETRY_AFTER) {
        page.insert_header((RETRY_AFTER, after.clone()));
    }
    page.body(html)
}

fn text(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::LoginFailed => {
            "You returned too late, a second time, in another browser, or with unexpected parameters."
        }
        ErrorCode::AppTlsRequired => {
            "Your browser cannot keep you signed in over plain http. Use the https address of this app."
        }
        ErrorCode::LoginNotConfigured => {
            "The operator of this service has not configured its address (SERVICE_PUBLIC_BASE_URL), so users cannot sign in to apps."
        }
        ErrorCode::AppRateLimited => {
            "Too many sign-ins were started from your network. Try again in ten minutes."
        }
        ErrorCode::AppOriginMismatch => "Another site started the sign-in. Open the page of the app.",
        _ => "The service is not available. Try again in a moment.",
    }
}
