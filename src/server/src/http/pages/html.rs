//! A page as an answer: filled, and with what the browser is to know about it.

use actix_web::http::StatusCode;
use actix_web::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER,
    WWW_AUTHENTICATE,
};
use actix_web::{HttpResponse, ResponseError};
use minijinja::{Environment, Value, context};
use wire::ErrorCode;

use super::assets;
use crate::http::error::{ApiError, ApiResult};
use crate::http::request_id;

/// Nothing but our own files, no frame around it but those of `ancestors`, and no text becomes code or markup.
fn policy(images: &str, ancestors: &str) -> String {
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src {images}; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors {ancestors}; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Who may embed one of our pages in a frame.
pub(super) enum FrameAncestors<'a> {
    /// Pages of these origins.
    Origins(&'a [String]),
    /// Every page.
    Anyone,
}

/// Images of the page's own host and of others, which widgets name.
const ALL_IMAGES: &str = "'self' data: https:";

/// What a page may use of the device: at most the microphone, in frames of these origins.
fn permissions(microphone: &str) -> String {
    format!("camera=(), microphone=({microphone}), geolocation=(), payment=(), usb=()")
}

/// Fills a template of `src/server/pages`; what it is filled with is escaped.
pub(super) fn page(status: StatusCode, name: &str, filling: Value) -> ApiResult<HttpResponse> {
    let missing = || ApiError::new(ErrorCode::Internal).with_cause(format!("no template {name}"));
    let template = assets::template(name).ok_or_else(missing)?;
    let text = str::from_utf8(&template.data).map_err(|error| internal(name, &error))?;
    // The name ends with .html, which is what turns escaping on.
    let html =
        Environment::new().render_named_str(name, text, filling).map_err(|error| internal(name, &error))?;
    Ok(HttpResponse::build(status)
        .insert_header((CONTENT_TYPE, "text/html; charset=utf-8"))
        .insert_header((CACHE_CONTROL, "no-cache"))
        .insert_header((CONTENT_SECURITY_POLICY, policy("'self'", "'none'")))
        .insert_header(("Cross-Origin-Opener-Policy", "same-origin"))
        .insert_header(("Permissions-Policy", permissions("")))
        .insert_header(("Referrer-Policy", "no-referrer"))
        .insert_header(("X-Content-Type-Options", "nosniff"))
        .insert_header(("X-Frame-Options", "DENY"))
        .body(html))
}

/// Allows images of other hosts, which widgets name. The page refuses those that its thread does not allow; text of a model never
/// becomes an image.
pub(super) fn allow_images(page: &mut HttpResponse) {
    set(page, CONTENT_SECURITY_POLICY, &policy(ALL_IMAGES, "'none'"));
}

/// Allows the hosted widget, or the built-in chat in its place; the widget's script loads more from its CDN and opens a frame of the CDN.
pub(super) fn allow_widget(page: &mut HttpResponse, cdn: &str) {
    let policy = format!(
        "default-src 'none'; script-src 'self' {cdn}; frame-src {cdn}; connect-src 'self'; img-src {ALL_IMAGES} {cdn}; \
         style-src 'self' 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    set(page, CONTENT_SECURITY_POLICY, &policy);
}

/// Allows frames around the page, besides our own pages.
pub(super) fn allow_frames(page: &mut HttpResponse, allowed: &FrameAncestors<'_>) {
    let ancestors = match allowed {
        FrameAncestors::Origins(origins) => format!("'self' {}", origins.join(" ")),
        FrameAncestors::Anyone => "*".to_owned(),
    };
    set(page, CONTENT_SECURITY_POLICY, &policy(ALL_IMAGES, &ancestors));
    page.headers_mut().remove("x-frame-options");
    page.headers_mut().remove("cross-origin-opener-policy");
}

/// Allows the microphone, for dictation; `frame`: in a frame of this origin, too.
pub(super) fn allow_microphone(page: &mut HttpResponse, frame: Option<&str>) {
    let frame = frame.map(|origin| format!(" \"{origin}\"")).unwrap_or_default();
    set(page, HeaderName::from_static("permissions-policy"), &permissions(&format!("self{frame}")));
}

/// Allows a form of the page, whose answer sends the browser on to this origin: browsers check both.
pub(super) fn allow_form(page: &mut HttpResponse, origin: &str) {
    let policy = policy("'self'", "'none'");
    set(
        page,
        CONTENT_SECURITY_POLICY,
        &policy.replace("form-action 'none'", &format!("form-action 'self' {origin}")),
    );
    // Without a referrer, browsers do not say that the form comes from our page.
    set(page, HeaderName::from_static("referrer-policy"), "same-origin");
}

/// A value that no header can have leaves the stricter one.
fn set(page: &mut HttpResponse, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        page.headers_mut().insert(name, value);
    }
}

/// A page that says why there is nothing to show, with the status of the refusal. `root`: the relative address of the service's first
/// page.
pub(super) fn closed(error: &ApiError, title: &str, text: &str, root: &str) -> ApiResult<HttpResponse> {
    // What the API would answer is logged and counted alike.
    let answer = error.error_response();
    let again = answer.status().is_server_error();
    let id = if again { request_id::current() } else { None };
    let filling = context! { title, text, again, root, request_id => id, code => error.code().as_str() };
    let mut page = page(answer.status(), "closed.html", filling)?;
    keep_headers(&mut page, &answer);
    Ok(page)
}

/// What the headers of a refusal say stands above its page too.
pub(super) fn keep_headers(page: &mut HttpResponse, refusal: &HttpResponse) {
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = refusal.headers().get(&name) {
            page.headers_mut().insert(name, value.clone());
        }
    }
}

fn internal(name: &str, error: &dyn std::error::Error) -> ApiError {
    ApiError::new(ErrorCode::Internal).with_cause(format!("{name}: {error}"))
}
